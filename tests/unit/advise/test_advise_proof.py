"""The page of `make advise-proof`."""

from tests.advise.__main__ import PAGE, read_proofs
from tests.advise.proof import Proof, page


def proof(**about: object) -> Proof:
    known = {"name": "n", "goal": 120.0, "before": 100.0}
    return Proof(**{**known, **about})  # type: ignore[arg-type]


def test_more_for_clients_and_less_time_for_recovery_are_better() -> None:
    asked = {"asked": "client at least 120 ops/s", "advised": "balanced"}
    found = [proof(after=after, **asked) for after in (90.0, 110.0, 130.0)]
    assert [(it.better, it.reached) for it in found] == [
        *((False, False), (True, False), (True, True))
    ]
    within = {"asked": "recovery within 70s", "advised": "balanced", "goal": 70.0}
    found = [proof(after=after, **within) for after in (110.0, 80.0, 60.0)]
    assert [(it.better, it.reached) for it in found] == [
        *((False, False), (True, False), (True, True))
    ]
    refused = proof(asked="client at least 120 ops/s", why="nothing is known")
    assert not refused.better and "refused: nothing is known" in page([refused])


def test_the_page_is_made_of_the_proofs_that_are_kept() -> None:
    proofs = read_proofs()
    assert proofs
    assert PAGE.read_text(encoding="utf-8") == page(proofs)
