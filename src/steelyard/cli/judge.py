"""steelyard judge: the judging page of a pool, on this computer or as one file."""

from __future__ import annotations

import getpass
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from steelyard.cli.arguments import Argument, Option, UsageError
from steelyard.cli.output import print_message, print_messages, progress_bar
from steelyard.wording import counted

if TYPE_CHECKING:
    from steelyard.datasets import Dataset
    from steelyard.judging.model import ModelJudge
    from steelyard.judging.pool import Pool


def judge(
    pool: Annotated[Path, Argument("POOL", "What to judge, as `steelyard pool` writes it.")],
    dataset: Annotated[str, Option("The texts of queries and documents: a folder, a file or a name.", "DIR")],
    output: Annotated[
        Path,
        Option(
            "The judgments file, appended to; judging continues where it stopped.",
            "FILE",
            names=("--output", "-o"),
        ),
    ] = Path("judgments.jsonl"),
    judge: Annotated[
        str | None, Option("The judge's name; without it, the name of the computer's user.", "NAME")
    ] = None,
    judges: Annotated[
        str | None, Option("All judges, to split the pool among them; everyone runs the same command.", "A,B")
    ] = None,
    overlap: Annotated[
        str, Option("With --judges, the share of the pool that all of them get.", "SHARE")
    ] = "10%",
    guidelines: Annotated[
        Path | None, Option("The scale with labels, descriptions and keys, in YAML.", "FILE")
    ] = None,
    html: Annotated[
        Path | None, Option("Write the page as one file to send to someone, and serve nothing.", "FILE")
    ] = None,
    port: Annotated[int, Option("The port on 127.0.0.1; 0 is any free one.", "N")] = 0,
    seed: Annotated[int, Option("For the order of the documents and the split among judges.", "N")] = 0,
    no_open: Annotated[bool, Option("Do not open the browser.")] = False,
    endpoint: Annotated[
        str | None, Option("Let a model judge: the address of a chat-completions endpoint.", "URL")
    ] = None,
    model: Annotated[str | None, Option("--endpoint: the name of the model.", "NAME")] = None,
    prompt: Annotated[
        str, Option("--endpoint: graded, binary, or a file with {query} and {document}.", "NAME|FILE")
    ] = "graded",
    api_key_env: Annotated[
        str, Option("--endpoint: the environment variable with the API key.", "NAME")
    ] = "OPENAI_API_KEY",
    cache: Annotated[Path, Option("--endpoint: every answer; nothing is asked twice.", "FILE")] = Path(
        "judge.sqlite"
    ),
    max_requests: Annotated[int | None, Option("--endpoint: stop before more requests.", "N")] = None,
    max_tokens: Annotated[int | None, Option("--endpoint: stop before more tokens.", "N")] = None,
    concurrency: Annotated[int, Option("--endpoint: requests at a time.", "N")] = 4,
    repeat: Annotated[
        int, Option("--endpoint: ask every question this often, to see if the model agrees with itself.", "N")
    ] = 1,
    deadline: Annotated[float, Option("--endpoint: seconds that a request may take.", "S")] = 120.0,
    plan: Annotated[bool, Option("--endpoint: print what it would take, and ask nothing.")] = False,
) -> None:
    """Judge the documents of a pool in the browser, one at a time, in blind order;
    or by a language model.

    Examples:

      steelyard judge pool.jsonl --dataset data -o judgments.jsonl --judge ann

      steelyard judge pool.jsonl --dataset data --judges ann,bob --judge bob \\
          --html for-bob.html

      steelyard judge pool.jsonl --dataset data -o gpt.jsonl --model llama3 \\
          --endpoint http://127.0.0.1:11434/v1 --max-requests 500

    The page is served on 127.0.0.1 until Ctrl-C. Every judgment is written to the
    file before the next document is shown. With --html the judgments are kept in
    the browser and exported as a judgments file; without --judge the page asks for
    the name.
    """
    from steelyard.datasets import Dataset
    from steelyard.judging.pool import Pool

    if endpoint is not None:
        if model is None:
            raise UsageError("--endpoint needs --model, the name of the model.")
        from steelyard.judging.chat import Endpoint
        from steelyard.judging.model import ModelJudge

        made = ModelJudge(
            Endpoint(endpoint, model, os.environ.get(api_key_env, ""), deadline),
            prompt,
            name=judge,
            cache=cache,
            max_requests=max_requests,
            max_tokens=max_tokens,
            concurrency=concurrency,
            repeat=repeat,
        )
        return _judge_by_model(made, Pool.read(pool), Dataset.read(dataset, judged=False), output, plan)
    names = None if judges is None else [name.strip() for name in judges.split(",")]
    share = share_of(overlap)
    if names is not None and judge is None:
        raise UsageError("--judges splits the pool; --judge says which of them you are.")
    read, texts = Pool.read(pool), Dataset.read(dataset, judged=False)
    if html is not None:
        _write(read, texts, html, judge, names, share, guidelines, seed)
    else:
        name = judge if judge is not None else getpass.getuser()
        _serve(read, texts, output, name, names, share, guidelines, seed, port, browse=not no_open)


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
        raise UsageError(f"--overlap is {text!r}; expected a share, as in 10% or 0.1.")
    return share


def _judge_by_model(made: ModelJudge, pool: Pool, dataset: Dataset, output: Path, plan: bool) -> None:
    """Ask the model what is not answered yet, and report what it took."""
    from steelyard.judging.model import open_judgments

    tasks = made.tasks(pool, dataset)
    print_message(f"{made.plan(tasks)}.")
    if plan:
        return
    judgments = open_judgments(output)
    print_messages(f"{each}." for each in judgments.notes)
    with progress_bar() as progress:
        stopped = made.run(
            tasks, judgments, lambda done, total, tokens: progress(f"judging, {tokens:,} tokens", done, total)
        )
    none = sum(line.grade is None for line in judgments.current)
    print_message(
        f"{counted(len(judgments), 'judgment')} in {output}, {none:,} of them without a grade; "
        f"{counted(made.requests, 'request')}, {made.tokens:,} tokens."
    )
    if stopped is not None:
        print_message(f"Stopped: {stopped}. Run the command again to continue.")
    print_message("These are the labels of a model: `steelyard agreement` compares them with human ones.")


def _write(
    pool: Pool,
    dataset: Dataset,
    page: Path,
    judge: str | None,
    judges: list[str] | None,
    overlap: float,
    guidelines: Path | None,
    seed: int,
) -> None:
    from steelyard.judging.page import html

    html(pool, dataset, page, judge, judges=judges, overlap=overlap, guidelines=guidelines, seed=seed)
    print_message(
        f"{page}: the judging page of {pool!r} ({page.stat().st_size / 1e6:.1f} MB). Whoever judges exports a "
        "judgments file from it and sends that back."
    )


def _serve(
    pool: Pool,
    dataset: Dataset,
    output: Path,
    judge: str,
    judges: list[str] | None,
    overlap: float,
    guidelines: Path | None,
    seed: int,
    port: int,
    browse: bool,
) -> None:
    from steelyard.judging.server import JudgingServer, serve

    def ready(server: JudgingServer) -> None:
        print_messages(map(str, server.session.judgments.notes))
        print_message(f"{server.session.summary()} Judge at {server.address}")
        print_message(f"Judgments are saved in {output}. Ctrl-C stops.")
        if browse:
            _browse(server.address)

    session = serve(
        pool, dataset, output, judge,
        judges=judges, overlap=overlap, guidelines=guidelines, port=port, seed=seed, ready=ready,
    )  # fmt: skip
    print_message(f"{output}: {session.summary()}")


def _browse(address: str) -> None:
    """Open the page in the browser, beside the server."""
    import threading
    import webbrowser

    threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
