"""steelyard questions: draft questions from a corpus with a language model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, Setting, UsageError
from steelyard.cli.output import print_message, print_messages, print_tables, progress_bar
from steelyard.wording import counted


def questions(
    corpus: Annotated[Path, Argument("CORPUS", "A folder of texts, corpus.jsonl, a table, or a dataset folder.")],
    endpoint: Annotated[str, Option("The address of a chat-completions endpoint.", "URL")],
    model: Annotated[str, Option("The name of the model.", "NAME")],
    output: Annotated[Path, Option("The folder to write: a dataset, and every draft with its reason.", "DIR")],
    n: Annotated[int, Option("Drafts to ask for; rejected ones count.", "N", names=("--number", "-n"))] = 200,
    kinds: Annotated[
        list[str] | None,
        Setting(
            "Shares of fact, procedure, two-passage, unanswerable and prompt files with {passage}, as in "
            "fact=0.6,procedure=0.4. Default: fact=0.75,procedure=0.25.",
            "KIND=SHARE,...",
            commas=True,
        ),
    ] = None,
    like: Annotated[Path | None, Option("Real questions whose length, form and vocabulary to follow.", "FILE")] = None,
    critic: Annotated[
        str | None, Option("A model at the endpoint that must answer each question from its span.", "NAME")
    ] = None,
    by: Annotated[str | None, Setting("Draw passages equally from each value of this field.", "FIELD")] = None,
    api_key_env: args.ApiKeyEnv = "OPENAI_API_KEY",
    cache: args.Cache = Path("questions.sqlite"),
    max_requests: args.MaxRequests = None,
    max_tokens: args.MaxTokens = None,
    concurrency: args.Concurrency = 4,
    retry: args.Retry = False,
    timeout: args.Timeout = 120.0,
    plan: args.Plan = False,
    seed: args.Seed = 0,
) -> None:
    """Draft questions from a corpus with a language model. Each has the exact words
    that answer it as evidence, so that it holds for any chunking.

    Example:

      steelyard questions docs --endpoint http://127.0.0.1:11434/v1 \\
          --model llama3 -n 200 -o questions

    Passages are drawn at random, each document with the same probability. Drafts
    are rejected if their span is not in the passage, if they point at the passage,
    copy it, give the answer away, are too general or repeat each other. The file
    drafts.jsonl has all of them, with the reason. `steelyard judge questions` lets
    a person approve them. Run the command again after a crash: what was answered
    is not asked again.
    """
    from steelyard.benchmark.folder import command_of
    from steelyard.judging.approval import by_checks
    from steelyard.judging.drafting import Drafting, client
    from steelyard.judging.drafts import check_folder

    check_folder(output, corpus)
    model_client = client(endpoint, model, cache, api_key_env, timeout, max_requests, max_tokens, concurrency, retry)
    try:
        drafting = Drafting(corpus, model_client, n, shares_of(kinds), like, critic, by, seed)
        print_message(f"{drafting.plan()}.")
        if drafting.second_requests:
            print_message(f"Then at most {counted(drafting.second_requests, 'request')} more, to check drafts.")
        if plan:
            return
        with progress_bar() as progress:
            drafts = drafting.run(
                lambda done, total, tokens: progress(f"drafting, {tokens:,} tokens", done, total), progress
            )
    finally:
        model_client.cache.close()
    drafts = drafts.write(output)
    print_message(drafts.verdict)
    print_tables(drafts.document().tables)
    print_messages(drafts.notes)
    to_approve = f"Next: {command_of('judge', output)} (a person approves the questions)"
    accepted = any(map(by_checks, drafts.drafts))
    print_message(f"Written to {output}. {to_approve if accepted else 'No draft was accepted: nothing to approve.'}")


def shares_of(parts: list[str] | None) -> dict[str, float] | None:
    """The shares of the kinds.

    >>> shares_of(["fact=0.5", "procedure=0.5"])
    {'fact': 0.5, 'procedure': 0.5}
    """
    if parts is None:
        return None
    shares: dict[str, float] = {}
    for part in parts:
        name, equals, share = part.rpartition("=")
        try:
            shares[name] = float(share)
        except ValueError:
            equals = ""
        if not equals or not name:
            raise UsageError(f"--set kinds is {part!r}; expected KIND=SHARE, as in fact=0.75,procedure=0.25.")
    return shares
