"""A local chat-completions server that plays a model that writes questions, with known faults."""

from __future__ import annotations

import json
import re
from http.server import BaseHTTPRequestHandler

from playback import Playback, send

PASSAGE = re.compile(r"<passage \w+>\n(.*?)\n</passage", re.DOTALL)

FAULTS = {
    "salt": "span missing",
    "iron": "not standalone",
    "wool": "copies its source",
    "glass": "answer in question",
    "amber": "too general",
    "tin": "no question",
    "silk": "malformed answer",
    "paper": "near-repeat",
}
"""The subject of a document, and the fault of the draft that this model writes about it."""


def corpus(documents: int = 28) -> dict[str, str]:
    """Documents on different goods; those on a subject of FAULTS are drafted with its fault."""
    goods = [*FAULTS, "wine", "bread", "linen", "copper", "pepper", "honey", "cedar", "pearls", "olives", "marble"]
    texts = {}
    for number in range(documents):
        good, year = goods[number % len(goods)], 1700 + 7 * number
        texts[f"d{number:02}"] = (
            f"The merchants of harbour number {number} began to trade in {good} in the year {year}. "
            f"They had learned the craft “abroad”, and their ledgers from that time are still kept in the town hall. "
            f"Every barge that carried {good} paid a toll of {number + 3} coins at the\n  northern gate of the town. "
            f"The toll was abolished when the railway reached the valley, which changed the routes of all goods."
        )
    return texts


def drafted(passage: str) -> str:
    """What the model answers: a good draft in one of three forms, or the fault of the subject."""
    good = re.search(r"trade in (\w+) in the year", passage)[1]  # type: ignore[index]
    number = re.search(r"number (\d+)", passage)[1]  # type: ignore[index]
    coins = re.search(r"toll of (\d+) coins", passage)[1]  # type: ignore[index]
    question = f"How much did barges with {good} pay at harbour {number} before railways?"
    quote = f"paid a toll of {coins} coins at the northern gate"
    match FAULTS.get(good):
        case "span missing":
            quote = f"paid a toll of {coins} silver coins at the gate"
        case "not standalone":
            question = f"What does the passage say about {good} and tolls of harbour {number}?"
        case "copies its source":
            question = f"Every barge that carried {good} paid a toll of how many coins?"
        case "answer in question":
            question, quote = f"Did barges of {good} pay a toll of {coins} coins?", f"a toll of {coins} coins"
        case "too general":
            question = "What is the main point?"
        case "no question":
            return json.dumps({"question": None})
        case "malformed answer":
            return "I would rather talk about silk."
        case "near-repeat":
            question = "Which toll did every paper barge pay at gates?"
    made = json.dumps({"question": question, "quote": quote})
    forms = (made, f"Sure, here it is:\n```json\n{made}\n```", f"{{'note': 'none'}}\n{made}")
    return forms[int(number) % 3]


class Author(Playback):
    """Answers with `drafted`; `faults` is the share of requests that fail as those of Playback do."""

    def __init__(self, faults: float = 0.0, seed: int = 0) -> None:
        super().__init__({}, faults, seed)

    def answer(self, request: BaseHTTPRequestHandler, prompt: str, fault: str, style: str) -> None:
        if fault in ("", "no grade"):
            passages = PASSAGE.findall(prompt)
            text = drafted(passages[0]) if "<query" not in prompt else self.criticised(prompt)
            if len(passages) > 1:
                text = self.compared(passages)
            content = {"choices": [{"message": {"content": text}}], "usage": {"total_tokens": 100}}
            send(request, 200, json.dumps(content).encode())
            with self.lock:
                self.answered[prompt] += 1
            return None
        self.labels = {prompt: 0}
        return super().answer(request, prompt, fault, style)

    def criticised(self, prompt: str) -> str:
        if "Passage B:" in prompt:
            asked = re.search(r"<query.*?>\n(.*?)\n</query", prompt, re.DOTALL)[1]  # type: ignore[index]
            return json.dumps({"grade": int("bread" in asked), "reason": "B names the year"})
        return json.dumps({"grade": 0 if "wine" in prompt else 1, "reason": "as asked"})

    def compared(self, passages: list[str]) -> str:
        quotes = [re.search(r"trade in \w+ in the year \d+", passage)[0] for passage in passages]  # type: ignore[index]
        numbers = [re.search(r"number (\d+)", passage)[1] for passage in passages]  # type: ignore[index]
        question = f"Which of the harbours {numbers[0]} and {numbers[1]} opened its business earlier?"
        return json.dumps({"question": question, "quote": quotes[0], "quote_2": quotes[1]})
