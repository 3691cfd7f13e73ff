#!/bin/sh
# Joins nodes into one Redis Cluster: cluster.sh HOST:PORT ... The first half are primaries, the others their replicas.
# Run it again after nodes have new addresses: it tells all of them where the others are, and changes nothing else.
set -eu

SLOTS=16384
first=$1
primaries=$(($# / 2))

ask() { # NODE COMMAND ...
  node=$1
  shift
  redis-cli -h "${node%:*}" -p "${node##*:}" "$@" | tr -d '\r'
}

fact() { # NODE NAME: a line of CLUSTER INFO
  ask "$1" CLUSTER INFO | sed -n "s/^$2://p"
}

until_is() { # NAME VALUE NODE ...: every node reports it
  name=$1 value=$2
  shift 2
  for each in "$@"; do
    while [ "$(fact "$each" "$name")" != "$value" ]; do sleep 1; done
  done
}

for each in "$@"; do
  address=$(getent hosts "${each%:*}" | cut -d ' ' -f 1)
  ask "$first" CLUSTER MEET "$address" "${each##*:}"
done
until_is cluster_known_nodes $# "$@"

if [ "$(fact "$first" cluster_slots_assigned)" != $SLOTS ]; then
  at=0
  for each in "$@"; do
    if [ $at -lt $primaries ]; then
      from=$((SLOTS * at / primaries)) to=$((SLOTS * (at + 1) / primaries - 1))
      ask "$each" CLUSTER ADDSLOTSRANGE $from $to
      eval "id_$at=$(ask "$each" CLUSTER MYID)"
    else
      eval "id=\$id_$((at % primaries))"
      ask "$each" CLUSTER REPLICATE "$id"
    fi
    at=$((at + 1))
  done
fi
until_is cluster_state ok "$@"
