"""Damaged files and keys by the thousand, at every door: `make prove` fails where one is neither read nor refused."""

import argparse
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.parsers.attack import DOORS, Attack

ROUND = 200  # damaged inputs of a door before the next one has its turn


def main() -> None:
    """Goes round the doors until the time is up."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--doors", nargs="*", default=list(DOORS))
    asked = parser.parse_args()
    faults: dict[str, str] = {}
    with TemporaryDirectory() as folder:
        attacks = [Attack(door, Path(folder) / door, asked.seed) for door in asked.doors]
        until = time.monotonic() + asked.seconds
        while time.monotonic() < until:
            for attack in attacks:
                for fault in attack.go_on(ROUND):
                    if fault.kind not in faults:
                        faults[fault.kind] = fault.said
                        print(f"{fault.said}\n", file=sys.stderr, flush=True)
    for attack in attacks:
        print(f"{attack.door}: {attack.count:,} damaged, {attack.refused:,} refused, the others read")
    print(f"seed {asked.seed}")
    if faults:
        sys.exit(f"not proved: {len(faults)} faults")


if __name__ == "__main__":
    main()
