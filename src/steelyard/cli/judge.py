"""steelyard judge and questions: the judging page, judging by a model, and questions drafted by one."""

from __future__ import annotations

import getpass
import os
from collections.abc import Callable
from contextlib import ExitStack
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from steelyard.checks import whole_number
from steelyard.cli import options as args
from steelyard.cli.options import Argument, Option, Setting, UsageError
from steelyard.cli.output import print_message, print_messages, print_tables, progress_bar
from steelyard.io.files import no_such_file
from steelyard.notes import sentence
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.benchmark.judged import ResultJudging
    from steelyard.datasets import Dataset
    from steelyard.judging.model import ModelJudge
    from steelyard.judging.pool import Pool
    from steelyard.judging.server import JudgingServer


_SHOWN = 10  # Pairs without a grade that are listed.
_WIDE = 200


def judge(
    pool: Annotated[
        Path,
        Argument(
            "RESULT|POOL|QUESTIONS",
            "The result folder of a bench, what `steelyard pool` writes, or the folder of `steelyard questions`.",
        ),
    ],
    dataset: Annotated[
        str | None, Option("POOL: a dataset with texts of queries and documents: a folder, a file or a name.", "DIR")
    ] = None,
    output: Annotated[
        Path | None,
        Option(
            "The judgments file, appended to; judging continues where it stopped. Default: judgments.jsonl, for a "
            "RESULT beside its bench.yaml."
        ),
    ] = None,
    budget: Annotated[
        int | None,
        Option(
            "How many to judge now. RESULT: documents; default 40. QUESTIONS: a random sample, to estimate the share "
            "of bad ones."
        ),
    ] = None,
    judge: Annotated[str | None, Option("The judge's name; default: that of the computer's user.")] = None,
    split: Annotated[
        list[str] | None, Setting("Split the pool among these judges; all run the same command.", "A,B", commas=True)
    ] = None,
    shared: Annotated[str, Setting("split: the share of the pool that all judges get.", "SHARE")] = "10%",
    guidelines: Annotated[Path | None, Setting("The scale: labels, descriptions and keys, in YAML.")] = None,
    html: Annotated[Path | None, Option("Write the page as a file to send to someone; serve nothing.")] = None,
    port: Annotated[int, Setting("The port on 127.0.0.1; 0 is any free one.")] = 0,
    seed: args.Seed = 0,
    open: Annotated[bool, Setting("Open the browser.")] = True,
    endpoint: Annotated[str | None, Option("Let a model judge: the URL of a chat-completions endpoint.", "URL")] = None,
    model: Annotated[str | None, Option("The name of the model.")] = None,
    prompt: Annotated[str, Option("graded, binary, or a file with {query} and {document}.", "NAME|FILE")] = "graded",
    api_key_env: args.ApiKeyEnv = "OPENAI_API_KEY",
    cache: args.Cache = Path("judge.sqlite"),
    max_requests: args.MaxRequests = None,
    max_tokens: args.MaxTokens = None,
    concurrency: args.Concurrency = 4,
    repeat: Annotated[int, Setting("Ask every question this often, to see if the model agrees with itself.")] = 1,
    retry: args.Retry = False,
    timeout: args.Timeout = 120.0,
    plan: args.Plan = False,
) -> None:
    """Judge what the retrievers of a bench returned, in the browser, one document at
    a time, in blind order; or by a language model. Then: the verdict so far.

    Examples:

      steelyard judge bench-result

      steelyard judge bench-result --model llama3 \\
          --endpoint http://127.0.0.1:11434/v1 --max-requests 500

      steelyard judge pool.jsonl --dataset data --set split=ann,bob --judge bob \\
          --html for-bob.html

      steelyard judge questions --budget 50

    For a RESULT, the documents that can decide between its runs are chosen, and
    when you stop, the runs are compared by what is judged so far. The page is
    served on 127.0.0.1 until Ctrl-C. Every judgment is written to the file before
    the next document is shown. With --html the judgments are kept in the browser
    and exported as a judgments file; without --judge the page asks for the name.
    On a server: --set open=no --set port=8000 opens no browser.

    For QUESTIONS, the page shows each accepted draft with the text that answers it
    marked: accept, edit, reject or skip. When you stop, the folder is written again
    with the questions that are left.
    """
    from steelyard.io.datasets import dataset_named
    from steelyard.judging.approval import is_question_folder
    from steelyard.judging.pool import Pool

    if (endpoint is None) != (model is None):
        raise UsageError("--endpoint and --model go together: the address of the endpoint, and the name of the model.")
    if plan and endpoint is None:
        raise UsageError("--plan shows what a model would be asked: add --endpoint and --model.")
    if endpoint is not None and (html is not None or split is not None):
        raise UsageError("--endpoint asks a model; --html and --set split are for people. Leave out one of them.")
    share = share_of(shared)
    if split is not None and judge is None:
        raise UsageError("--set split divides the pool among judges; --judge says which of them you are.")
    work: ResultJudging | None = None
    if is_question_folder(pool):
        if endpoint is not None or html is not None or split is not None or dataset is not None or output is not None:
            raise UsageError("QUESTIONS are approved on the page, in their own folder; leave out the other options.")
        return _approve(pool, judge or getpass.getuser(), budget, seed, port, browse=open)
    if pool.is_dir():
        from steelyard.benchmark.judged import BUDGET, judge_result

        if dataset is not None:
            raise UsageError("a result folder has its texts; leave out --dataset.")
        work = judge_result(pool, output, BUDGET if budget is None else whole_number("--budget", budget, 1))
        read, texts, output = work.pool, work.dataset, work.file
        if work.left_out:
            print_message(f"{counted(work.left_out, 'document has', 'documents have')} no text and cannot be judged.")
        print_messages(map(sentence, work.notes))
        if not len(read):
            print_message("Every document that the runs have in their first ranks is judged.")
            return _print_verdict(work)
    elif budget is not None:
        raise UsageError(
            "--budget is for a result folder or QUESTIONS; `steelyard pool --budget` chooses the documents of a pool."
        )
    elif dataset is None:
        if not pool.exists():
            raise no_such_file(pool, "pool, result folder or question folder")
        raise UsageError("a pool needs --dataset, the texts of its queries and documents; a result folder does not.")
    else:
        read, texts = Pool.read(pool), dataset_named(dataset, judged=False)
        output = output or Path("judgments.jsonl")
    if endpoint is not None:
        from steelyard.judging.client import Endpoint
        from steelyard.judging.model import ModelJudge

        server = Endpoint(endpoint, str(model), os.environ.get(api_key_env, ""), timeout)
        model_judge = ModelJudge(server, prompt, judge, cache, max_requests, max_tokens, concurrency, repeat, retry)
        _judge_by_model(model_judge, read, texts, output, plan)
    elif html is not None:
        from steelyard.judging.page import html as write_page

        write_page(read, texts, html, judge, judges=split, overlap=share, guidelines=guidelines, seed=seed)
        return print_message(
            f"{html}: the judging page of {read!r} ({html.stat().st_size / 1e6:.1f} MB). Whoever judges exports a "
            "judgments file from it and sends that back."
        )
    else:
        from steelyard.judging.server import serve

        with ExitStack() as closing:
            session = serve(
                read, texts, output, judge if judge is not None else getpass.getuser(),
                judges=split, overlap=share, guidelines=guidelines, port=port, seed=seed,
                then="" if work is None else work.next_command, ready=_ready(output, open, closing),
            )  # fmt: skip
        print_message(f"{output}: {session.summary()}")
    if work is not None and not plan:
        _print_verdict(work)


def _print_verdict(work: ResultJudging) -> None:
    """The verdict by what is judged so far, how many more judgments would decide it, and the next command."""
    from steelyard.benchmark.folder import command_of

    comparison, judged = work.comparison(), work.qrels()
    if comparison is None:
        why = "there is one run, and nothing to compare it with" if len(judged) else "nothing is judged yet"
        command = work.next_command if len(judged) else command_of("judge", work.result.path)
        print_message(f"No verdict: {why}. Next: {command}")
        return
    print_message(
        f"By {counted(len(judged), 'judgment')} of {counted(len(judged.queries), 'question')}: {comparison.verdict}"
    )
    pair = comparison.leading_pair
    if pair is not None and not isnan(pair.low):
        shares = ""
        if pair.judged_run is not None and pair.judged_baseline is not None:
            shares = f"; {pair.judged_run:.0%} and {pair.judged_baseline:.0%} of their first documents are judged"
        interval = f"{pair.low:+.4f} to {pair.high:+.4f} ({comparison.interval_heading})"
        print_message(f"{pair.run} vs {pair.baseline}: {interval}{shares}.")
    expected = work.forecast(comparison)
    if expected is not None:
        print_message(str(expected))
        if expected.needed is not None:
            print_message(f"Go on judging: {command_of('judge', work.result.path)}")
    print_message(work.next_step)


def share_of(text: str) -> float:
    """A share as a number, from a percentage or a number.

    >>> share_of("10%"), share_of("0.25")
    (0.1, 0.25)
    """
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise UsageError(f"--set shared is {text!r}; expected a share, as in 10% or 0.1.")
    return share


def _judge_by_model(model_judge: ModelJudge, pool: Pool, dataset: Dataset, output: Path, plan: bool) -> None:
    """Ask the model what is not answered yet, and report what it took."""
    from steelyard.io.judgments import open_judgments
    from steelyard.io.text import shortened

    questions = model_judge.questions(pool, dataset)
    print_message(f"{model_judge.plan(questions)}.")
    print_messages(f"{note}." for note in model_judge.notes())
    if plan:
        return
    judgments = open_judgments(output)
    print_messages(f"{note}." for note in judgments.notes)
    with progress_bar() as progress:
        stopped = model_judge.judge(
            questions, judgments, lambda done, total, tokens: progress(f"judging, {tokens:,} tokens", done, total)
        )
    without = [line for line in judgments.current if line.grade is None]
    made = f"{counted(len(judgments), 'judgment')} in {output}, {len(without):,} of them without a grade"
    if not output.exists():
        made = f"No judgment was made, and {output} was not written"
    print_message(f"{made}; {counted(model_judge.requests, 'request')}, {model_judge.tokens:,} tokens.")
    for line in without[:_SHOWN]:
        reason = shortened(str(line.more.get("reason") or "no reason"), _WIDE)
        print_message(f"  no grade: {line.doc_id} for {line.query_id}: {reason}")
    if without:
        print_message("The same command with --retry asks for these again.")
    if stopped is not None:
        print_message(f"Stopped: {stopped}. Run the command again to continue.")
    print_message("These are the labels of a model: `steelyard agreement` compares them with human ones.")


def _ready(output: Path, browse: bool, closing: ExitStack) -> Callable[[JudgingServer], None]:
    """What is printed and opened once the server listens.

    Every user of the computer can read the arguments of a process, and the address has the token. The browser gets a
    file that only this user can read and that leads to the address; it is removed when the server stops.
    """

    def ready(server: JudgingServer) -> None:
        print_messages(map(str, server.session.judgments.notes))
        print_message(f"{server.session.summary()} Judge at {server.address}")
        print_message(f"Judgments are saved in {output}. Ctrl-C stops.")
        if not browse:
            return
        import shutil
        import threading
        import webbrowser

        from steelyard.temporary import temporary_folder

        folder = temporary_folder("judge")
        closing.callback(shutil.rmtree, folder.parent)
        page = folder / "judge.html"
        page.touch(mode=0o600)
        refresh = f'<meta http-equiv="refresh" content="0; url={server.address}">'
        page.write_text(f"<!DOCTYPE html><title>steelyard judge</title>{refresh}")
        threading.Thread(target=webbrowser.open, args=(page.as_uri(),), daemon=True).start()

    return ready


def _approve(folder: Path, judge: str, sample: int | None, seed: int, port: int, browse: bool) -> None:
    """The page on the drafts of a question folder; then the folder by what was decided, and the share of bad ones."""
    from steelyard.benchmark.folder import command_of
    from steelyard.judging.approval import FILE, Approval
    from steelyard.judging.server import serve_session

    session = Approval(folder, judge, sample, seed)
    with ExitStack() as closing:
        serve_session(session, port, _ready(folder / FILE, browse, closing))
    drafts = session.finish()
    print_messages([session.estimate(), drafts.verdict, f"Next: {command_of('bench', folder / 'bench.yaml')}"])


def questions(
    corpus: Annotated[Path, Argument("CORPUS", "A folder of texts, corpus.jsonl, a table, or a dataset folder.")],
    endpoint: Annotated[str, Option("The address of a chat-completions endpoint.", "URL")],
    model: Annotated[str, Option("The name of the model.")],
    output: Annotated[Path, Option("The folder to write: a dataset, and every draft with its reason.", "DIR")],
    n: Annotated[int, Option("Drafts to ask for; rejected ones count.", names=("--number", "-n"))] = 200,
    kinds: Annotated[
        list[str] | None,
        Setting(
            "Shares of fact, procedure, two-passage, unanswerable and prompt files with {passage}, as in "
            "fact=0.6,procedure=0.4. Default: fact=0.75,procedure=0.25.",
            "KIND=SHARE,...",
            commas=True,
        ),
    ] = None,
    like: Annotated[Path | None, Option("Real questions whose length, form and vocabulary to follow.")] = None,
    critic: Annotated[
        str | None, Option("A model at the endpoint that must answer each question from its span.")
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
