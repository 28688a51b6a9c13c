#!/bin/bash
# A command of nmt as a job of Slurm; the words after the name of the file are those of nmt:
#   sbatch docs/clusters/slurm.sh train tatoeba
#   sbatch docs/clusters/slurm.sh compare mechanisms --jobs 2
# Five minutes before its time is up the job gets SIGTERM. nmt train, nmt compare and nmt backtranslate then write a checkpoint and end
# with exit code 75, and the job goes back into the queue. Its next turn continues, as does the turn after a preemption.
# On several machines, nmt train is one run, with PROCESSES processes on each machine, such as its GPUs:
#   PROCESSES=4 sbatch --nodes 2 --gpus-per-node 4 docs/clusters/slurm.sh train tatoeba
#SBATCH --job-name=nmt
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

machines=${SLURM_NNODES:-1}
command=(nmt "$@")
if [ "${1:-}" = train ]; then  # the other commands continue without an option
  command+=(--resume)
fi
distributed=
if [ "${1:-}" = train ] && [ "$machines" -gt 1 ]; then
  distributed=yes
  first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
  port=$((20000 + SLURM_JOB_ID % 10000))
  command=(srun --ntasks-per-node 1 --cpus-per-task "${SLURM_CPUS_PER_TASK:-1}"
    torchrun --nnodes "$machines" --nproc-per-node "${PROCESSES:-1}" --max-restarts 3
    --rdzv-id "$SLURM_JOB_ID" --rdzv-backend c10d --rdzv-endpoint "$first:$port" -m "${command[@]}")
fi

stopping=
"${command[@]}" &
child=$!
trap 'stopping=yes; kill -TERM "$child"' TERM
wait "$child"
code=$?
if [ -n "$stopping" ]; then  # the signal ended the wait; the command still writes
  wait "$child"
  code=$?
  if [ -n "$distributed" ] && [ "$code" -ne 0 ]; then
    code=75  # torchrun has a code of its own for a run that was stopped
  fi
fi
if [ "$code" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
