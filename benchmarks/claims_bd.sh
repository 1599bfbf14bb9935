#!/usr/bin/env bash
# Claims by many at once with beads (`bd`), as claims.py has them for ralf: for those who have `bd` installed.
#
#   bash benchmarks/claims_bd.sh [ROUNDS [RACERS]]      default: 20 rounds of 16
#
# Everything happens in a folder of its own, which is removed at the end.
set -euo pipefail
rounds=${1:-20} racers=${2:-16}

if ! command -v bd >/dev/null; then
  echo "bd is not here: nothing is measured" >&2
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
git init -q -b main .
bd init --prefix race >/dev/null 2>&1 || bd init >/dev/null

id_of() { # the first id in what `bd create --json` prints
  sed -n 's/.*"id"[: ]*"\([^"]*\)".*/\1/p' | head -n 1
}

wrong=0 untold=0 losers=0 most=0 begin=$(date +%s.%N)
for round in $(seq "$rounds"); do
  task=$(bd create "Carry over table $round" --json | id_of)
  mkfifo gate
  for racer in $(seq "$racers"); do
    # Each waits until the gate is opened, and then claims under a name of its own.
    (
      read -r _ <gate || true
      status=0
      BD_ACTOR="racer-$racer" BEADS_ACTOR="racer-$racer" bd update "$task" --claim --json >"said-$racer" 2>&1 || status=$?
      echo "$status" >"status-$racer"
    ) &
  done
  sleep 0.2
  for racer in $(seq "$racers"); do echo go; done >gate
  wait
  rm gate
  won=0 winners=nobody
  for racer in $(seq "$racers"); do
    if [ "$(cat "status-$racer")" -eq 0 ]; then
      won=$((won + 1)) winners="$winners|racer-$racer"
    fi
  done
  for racer in $(seq "$racers"); do
    if [ "$(cat "status-$racer")" -ne 0 ]; then
      losers=$((losers + 1))
      grep -qwE "$winners" "said-$racer" || untold=$((untold + 1))
    fi
  done
  [ "$won" -eq 1 ] || wrong=$((wrong + 1))
  [ "$won" -le "$most" ] || most=$won
  bd close "$task" >/dev/null 2>&1 || true
done
end=$(date +%s.%N)

echo "| case | figure |"
echo "| --- | --- |"
echo "| bd: version | $(bd version 2>/dev/null | head -n 1) |"
echo "| bd: rounds of $racers without one winner | $wrong of $rounds |"
echo "| bd: most winners of a round | $most |"
echo "| bd: losers who were not told the holder | $untold of $losers |"
echo "| bd: a round of $racers claims, with its start | $(awk "BEGIN { printf \"%.2f\", ($end - $begin) / $rounds }") s elapsed |"
