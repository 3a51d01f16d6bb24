"""The source code of a target: every user module that it imports, and no other."""

from __future__ import annotations

import sys

import pytest

from steelyard.retrievers.targets import code_hash, describe_callable, user_files

FILES = {
    "sy_svc.py": "import json\nimport numpy\nfrom sy_core import tfidf\n"
    "import steelyard\ndef retrieve(query): return tfidf(query)\n",
    "sy_core.py": "from sy_package.inner import weight\nimport sy_broken_lazily_never\n"
    "def tfidf(query): return [weight(query)]\n",
    "sy_broken_lazily_never.py": "",
    "sy_package/__init__.py": "",
    "sy_package/inner.py": "from . import beside\ndef weight(text):\n    from .later import one\n    return one\n",
    "sy_package/beside.py": "",
    "sy_package/later.py": "raise RuntimeError('this must not be run')\n",
    "sy_package/unrelated.py": "",
}


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name, text in FILES.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [name for name in sys.modules if name.startswith("sy_")]:
        del sys.modules[name]


def test_all_imports_are_followed_and_no_code_is_run(project):
    __import__("sy_svc")
    assert set(user_files("sy_svc")) == {
        "sy_svc", "sy_core", "sy_broken_lazily_never", "sy_package", "sy_package.inner", "sy_package.beside",
        "sy_package.later",
    }  # fmt: skip
    assert "sy_package.later" not in sys.modules


def test_the_hash_changes_with_every_imported_file_and_with_no_other(project):
    __import__("sy_svc")
    seen = {code_hash("sy_svc")}
    for name in FILES:
        with (project / name).open("a") as file:
            file.write("# changed\n")
        assert (code_hash("sy_svc") in seen) == (name == "sy_package/unrelated.py"), name
        seen.add(code_hash("sy_svc"))


def test_a_module_imported_dynamically_counts(project):
    (project / "sy_dynamic.py").write_text("import importlib\ncore = importlib.import_module('sy_' + 'core')\n")
    __import__("sy_dynamic")
    assert "sy_core" in user_files("sy_dynamic")


def test_the_description_of_a_callable_changes_with_what_it_imports(project):
    import sy_svc

    before = describe_callable(sy_svc.retrieve)
    (project / "sy_core.py").write_text("def tfidf(query): return []\n")
    assert describe_callable(sy_svc.retrieve) != before
