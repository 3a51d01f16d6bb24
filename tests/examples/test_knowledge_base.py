"""The generated knowledge base: its documented properties."""

from __future__ import annotations

from collections import Counter

import pytest
from examples.hybrid_retrieval import Shape, knowledge_base

from steelyard.errors import SteelyardError


@pytest.fixture(scope="module")
def base():
    return knowledge_base()


def topic_of(doc):
    return doc.split("-")[0]


def test_it_has_500_documents_in_10_topics(base):
    assert len(base.texts) == 500
    assert Counter(map(topic_of, base.texts)) == {f"t{number}": 50 for number in range(10)}
    assert len(set(base.texts.values())) == 500
    assert all(len(text.split()) == 60 for text in base.texts.values())


def test_questions_have_2_to_10_relevant_documents_that_exist(base):
    sizes = set()
    for question, targets in base.targets.items():
        answers = [doc for target in targets for doc in target]
        assert question in base.questions
        assert len(answers) == len(set(answers))
        assert set(answers) <= set(base.texts)
        assert not set(answers) & set(base.hubs)
        sizes.add(len(answers))
    assert sizes == set(range(2, 11))
    assert len(base.targets) == 240


def test_some_targets_have_several_documents_which_are_near_duplicates(base):
    copies = [(target[0], copy) for targets in base.targets.values() for target in targets for copy in target[1:]]
    assert len({copy for _, copy in copies}) > 80
    for original, copy in copies:
        kept = sum(a == b for a, b in zip(base.texts[original].split(), base.texts[copy].split(), strict=True))
        assert kept / 60 > 0.6


def test_the_link_graph_is_directed_and_has_hubs_and_orphans(base):
    into = Counter(target for links in base.links.values() for target in links)
    assert set(base.links) == set(base.texts)
    assert all(doc not in links for doc, links in base.links.items())
    one_way = sum(doc not in base.links[other] for doc, links in base.links.items() for other in links)
    assert one_way > sum(map(len, base.links.values())) / 2
    assert {doc for doc, _ in into.most_common(10)} <= set(base.hubs)
    assert into.most_common(1)[0][1] > 5 * sum(into.values()) / 500
    orphans = [doc for doc, links in base.links.items() if not links and not into[doc]]
    assert 20 < len(orphans) < 80


def test_a_tenth_to_a_third_of_links_lead_to_another_relevant_document(base):
    shares = []
    for targets in base.targets.values():
        answers = {doc for target in targets for doc in target}
        links = [other for doc in answers for other in base.links[doc]]
        shares.append(sum(other in answers for other in links) / max(1, len(links)))
    assert 0.1 < sum(shares) / len(shares) < 0.3


def test_the_same_seed_gives_the_same_base_and_another_seed_another(base):
    assert knowledge_base(seed=0) == base
    assert knowledge_base(seed=1).texts != base.texts


def test_the_corpus_has_links_and_the_qrels_have_targets(base):
    assert dict(base.corpus) == base.texts
    assert {doc: list(links) for doc, links in base.corpus.links.items()} == base.links
    frame = base.qrels.frame
    assert frame.height == sum(len(target) for targets in base.targets.values() for target in targets)
    assert frame["query_id"].n_unique() == 240


def test_an_impossible_shape_is_refused():
    with pytest.raises(SteelyardError, match="cannot be divided into 10 topics"):
        knowledge_base(shape=Shape(documents=505))
    with pytest.raises(SteelyardError, match="2 to 10 documents"):
        knowledge_base(shape=Shape(documents=1000))
