"""Run as a program: reads qrels, a run and metric names as JSON, writes the value of ranx for every query.

A process of its own, so that numba's compiler can be switched off before it is imported: ranx then runs
as the plain Python it is written in, which for small lists is far quicker than compiling it.
"""

from __future__ import annotations

import json
import sys


def main() -> None:
    import ranx

    asked = json.load(sys.stdin)
    qrels = ranx.Qrels(asked["qrels"])
    run = ranx.Run(asked["run"]).make_comparable(qrels)
    queries = list(qrels.keys())
    values = {}
    for metric in asked["metrics"]:
        found = ranx.evaluate(qrels, run, metric, return_mean=False)
        values[metric] = dict(zip(queries, map(float, found), strict=True))
    json.dump(values, sys.stdout)


if __name__ == "__main__":
    main()
