"""`python -m tests.questions`: writes the place of each answer among the results of its search."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.questions import PAGE, Question, read

SITE: Final = Path("build/site")


def results(searches: list[str]) -> list[list[str]]:
    """What the search page of the site shows first for each: addresses, best first."""
    argv = ["node", str(Path(__file__).with_name("search.js")), str(SITE), *searches]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=True)
    return [json.loads(line) for line in done.stdout.splitlines()]


def place(question: Question, found: list[str]) -> int | None:
    """From 1; None if the answer is not shown. A page answers with any of its headings if the
    question names none."""
    page = str(question.answer.relative_to("docs").with_suffix(".html"))
    for number, location in enumerate(found, 1):
        file, _, anchor = location.partition("#")
        if file == page and (anchor == question.anchor or not question.anchor):
            return number
    return None


def main() -> int:
    if not (SITE / "search.json").is_file():
        print(f"{SITE} has no site: run `make docs`", file=sys.stderr)
        return 2
    questions = list(read())
    text = PAGE.read_text(encoding="utf-8")
    faults = 0
    for question, found in zip(questions, results([it.search for it in questions]), strict=True):
        now = place(question, found)
        print(f"{now or '-':>3}  {question.search:30} {question.asked}")
        if now is None:
            faults += 1
            print(f"     found instead: {', '.join(found[:3])}")
        else:
            row = next(row for row in text.splitlines() if row.startswith(f"| {question.asked} |"))
            before, _, after = row.partition(f"| {question.search} | {question.place} |")
            text = text.replace(row, f"{before}| {question.search} | {now} |{after}")
    PAGE.write_text(text, encoding="utf-8")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
