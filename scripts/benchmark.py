"""Measure the speed figures of docs/measurements/benchmarks.md on this machine.

python scripts/benchmark.py preprocess --corpus deu-eng.zip
python scripts/benchmark.py workload --corpus deu-eng.zip --output workload
python scripts/benchmark.py train --workload workload --opennmt opennmt/bin/python --joeynmt joeynmt/bin/python
python scripts/benchmark.py limit --workload workload
python scripts/benchmark.py scale
python scripts/benchmark.py startup
python scripts/benchmark.py serve --model runs/sample --input data/sample/deu.txt
python scripts/benchmark.py quality --workload workload --opennmt opennmt/bin/python
python scripts/benchmark.py decode --workload workload --opennmt opennmt/bin/python --joeynmt joeynmt/bin/python
python scripts/benchmark.py runtime --workload workload --ctranslate2 ctranslate2/bin/python
python scripts/benchmark.py exported --model runs/tatoeba_transformer --data data/prepared/tatoeba_transformer
python scripts/benchmark.py steps --model runs/tatoeba_small --data data/prepared/tatoeba_small
python scripts/benchmark.py spans --model runs/tatoeba_small --data data/prepared/tatoeba_small
python scripts/benchmark.py checkouts --workload workload --before ../earlier
python scripts/benchmark.py gpu --prepared build/gpu
"""

from benchmarks import (
    checkouts,
    decode,
    exported,
    gpu,
    limit,
    preprocess,
    quality,
    runtime,
    scale,
    serve,
    spans,
    startup,
    steps,
    train,
    workload,
)
from benchmarks.arguments import run_command


def main() -> None:
    """Run one benchmark."""
    benchmarks = (preprocess, workload, train, limit, scale, startup, serve, quality, decode, runtime, exported)
    run_command(__doc__, (*benchmarks, steps, spans, checkouts, gpu))


if __name__ == "__main__":
    main()
