"""The summary: a line for each row, totals, and the JSON."""

from __future__ import annotations

from collections import Counter
from typing import Any

from .rows import Row


def line(row: Row) -> str:
    """One row as one line: operands whose map was read right, and the share of bit-equal elements by model."""
    text = f"{'right' if row['right'] else 'WRONG'}  {row['name']:<42}"
    if "why" in row:
        return f"{text} {row['why'].splitlines()[0]}"
    maps = row["map"]
    operands = [role for role in ("A", "B", "C", "D") if role in maps]
    read = "".join(
        role if maps[role]["right"] else f" {role}:{maps[role].get('wrong')} wrong " for role in operands
    )
    relation = "" if maps.get("relation", maps)["right"] else " relation WRONG"
    shares = ", ".join(f"{name} {_share(x)}" for name, x in row["numbers"].items() if "missing" not in x)
    special = row.get("special", {})
    found = ", ".join(f"{name} {_share(x)}" for name, x in special.items() if "missing" not in x)
    more = f"; with NaN and infinity: {found}" if found else ""
    return f"{text} map {read or 'moves'}{relation}; bit-equal: {shares}{more}"


def _share(entry: dict[str, Any]) -> str:
    equal = entry["equal"]
    return "all" if equal == 1 else f"{equal:.5f}"


def directed_lines(rows: list[Row]) -> list[str]:
    """By topic how many cases are as each model says, then every answer that sm_90's model does not give.

    ("exact" stands in for sm_90 where that has no model.)  Records that answer alike share a line.
    """
    out: list[str] = []
    cases = [case for row in rows for case in row.get("directed", [])]
    for topic in dict.fromkeys(case["topic"] for case in cases):
        here = [case for case in cases if case["topic"] == topic]
        counts = {
            model: f"{sum(c['got'] == c[model] for c in here if c[model])} of {sum(bool(c[model]) for c in here)}"
            for model in ("exact", "sm_90")
        }
        out.append(f"{topic}: " + ", ".join(f"{count} as {model}" for model, count in counts.items()))
        others = Counter(
            (c["case"], " ".join(c["got"]), " ".join(c["sm_90"] or c["exact"]))
            for c in here
            if c["got"] != (c["sm_90"] or c["exact"])
        )
        out += [
            f"    {case}: {got}, expected {wanted} ({n} records)" for (case, got, wanted), n in others.items()
        ]
    return out


def totals(rows: list[Row]) -> list[str]:
    """What the summary ends with."""
    products = [row for row in rows if "relation" in row.get("map", {})]
    moves = [row for row in rows if "map" in row and "relation" not in row["map"]]
    out = [f"{sum(row['right'] for row in rows)} of {len(rows)} rows right"]
    out.append(
        f"maps: {sum(r['map']['right'] for r in products + moves)} of {len(products + moves)} as the records say"
    )
    for model in ("exact", "sm_90"):
        have = [r for r in products if "equal" in r["numbers"].get(model, {})]
        runs = [[r[x][model]["equal"] for x in ("numbers", "special") if x in r] for r in have]
        equal = sum(all(share == 1 for share in shares) for shares in runs)
        out.append(f"{model}: {equal} of {len(have)} products bit-equal throughout")
    failed = [row["name"] for row in rows if "why" in row]
    out += [f"could not be run: {', '.join(failed)}"] if failed else []
    return out
