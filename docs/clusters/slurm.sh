#!/bin/bash
# One run as a job of Slurm; the words after the name of the file are those of nmt train:
#   sbatch docs/clusters/slurm.sh tatoeba
# Five minutes before its time is up the job gets SIGTERM. The run then writes a checkpoint and ends with exit code 75, and the job
# goes back into the queue. Its next turn resumes the run, as does the turn after a preemption.
#SBATCH --job-name=nmt
#SBATCH --cpus-per-task=2
#SBATCH --mem=8G
#SBATCH --time=04:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log

stopping=
nmt train "$@" --resume &
run=$!
trap 'stopping=yes; kill -TERM "$run"' TERM
wait "$run"
code=$?
if [ -n "$stopping" ]; then  # the signal ended the wait; the run still writes
  wait "$run"
  code=$?
fi
if [ "$code" -eq 75 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
