#!/bin/bash
# One run on two machines that share a folder. In that folder, on each of them, with the name and a free port of the first machine:
#   docs/clusters/torchrun.sh first:29500 tatoeba
# PROCESSES is the number of processes of a machine, such as its GPUs. The words after the port are those of nmt train.
set -eu
endpoint=$1
shift
exec torchrun --nnodes 2 --nproc-per-node "${PROCESSES:-1}" --max-restarts 3 \
  --rdzv-id nmt --rdzv-backend c10d --rdzv-endpoint "$endpoint" -m nmt train "$@" --resume
