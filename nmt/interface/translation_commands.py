"""Commands that use a model on text, or give it away: nmt translate, score, serve and export."""

from pathlib import Path
from typing import Annotated, Literal

import typer

import nmt
from nmt.interface import options
from nmt.interface.command import import_libraries, log_default_model


def translate(
    sentence: Annotated[
        str | None,
        typer.Argument(
            metavar="SENTENCE", help="Sentence to translate. [default: standard input; a session at a terminal]"
        ),
    ] = None,
    model: options.Models = None,
    input: Annotated[
        Path | None,
        typer.Option(
            "--input",
            "-i",
            metavar="FILE",
            help="File to translate, one sentence per line; or a file with markup, such as subtitles.",
        ),
    ] = None,
    output: options.OutputFile = None,
    beam_size: options.BeamSize = None,
    batch_size: options.BatchSize = None,
    n_best: Annotated[
        int,
        typer.Option(
            "--n-best",
            "--num-hypotheses",
            metavar="N",
            min=1,
            max=1000,
            help="Translations per sentence, as --format nbest unless given.",
        ),
    ] = 1,
    precision: options.Precision = None,
    overrides: options.SearchOverrides = None,
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="text|nbest|jsonl|pharaoh|FILE FORMAT",
            help="text: the translation. nbest: number ||| translation ||| score. jsonl: a JSON object per "
            "line, with tokens, scores and word alignment. pharaoh: word alignment, i-j. srt, vtt, po, xliff, html, "
            "md, json, yaml, docx, odt: --input has markup, which stays. [default: by the suffix of --input, or text]",
        ),
    ] = None,
    with_attention: Annotated[
        bool, typer.Option("--with-attention", help="Write the attention weights into --format jsonl too.")
    ] = False,
    attention: Annotated[
        Path | None, typer.Option("--attention", metavar="FILE.png", help="Draw the attention weights of the sentence.")
    ] = None,
    dictionary: Annotated[
        Path | None,
        typer.Option(
            "--dictionary",
            metavar="FILE.tsv",
            help="Translations of words that the model does not know: source word, tab, translation on each line.",
        ),
    ] = None,
    keep: options.Keep = None,
    glossary: options.Glossary = None,
    protect: Annotated[
        bool,
        typer.Option(
            "--protect/--no-protect", help="Take placeholders, addresses, tags, emoji and numbers over as they are."
        ),
    ] = True,
    split_sentences: Annotated[
        bool,
        typer.Option(
            "--split-sentences/--no-split-sentences",
            help="Translate the sentences of a line one by one, and long ones in parts.",
        ),
    ] = True,
    prefix: Annotated[
        str | None,
        typer.Option(
            "--prefix",
            metavar="TEXT",
            help="Words that the translation begins with, for one sentence, which is not split. The last one "
            "may go on, unless a space follows it.",
        ),
    ] = None,
    retranslate: Annotated[
        bool,
        typer.Option("--retranslate", help="Translate texts of a file with markup again that have a translation."),
    ] = False,
    workers: Annotated[
        int,
        typer.Option(
            "--workers",
            metavar="N",
            min=1,
            help="Processes that translate, each with its share of the processor's threads.",
        ),
    ] = 1,
    overwrite: options.OverwriteFiles = False,
    resume: Annotated[
        bool,
        typer.Option("--resume", help="Continue an unfinished translation of --input into --output, or start one."),
    ] = False,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Translate a sentence, a file or standard input. One line in, one line out.

    Example: nmt translate "She kissed him." --attention kiss.png
    """
    import_libraries("nmt.translation.translator")
    from nmt.translation.translate import translate as translate_text

    log_default_model(model)
    translate_text(
        sentence=sentence,
        model=model or (),
        input=input,
        output=output,
        beam_size=beam_size,
        batch_size=batch_size,
        n_best=n_best,
        precision=precision,
        overrides=overrides or (),
        format=format,
        with_attention=with_attention,
        attention=attention,
        dictionary=dictionary,
        keep=keep,
        glossary=glossary,
        protect=protect,
        split_sentences=split_sentences,
        prefix=prefix,
        retranslate=retranslate,
        workers=workers,
        overwrite=overwrite,
        resume=resume,
        device=device,
        allowed_classes=allowed_classes or (),
    )


def score(
    src: Annotated[Path, typer.Option("--src", metavar="FILE", help="Source sentences, one per line.")],
    tgt: Annotated[Path, typer.Option("--tgt", metavar="FILE", help="A translation of each, one per line.")],
    model: options.Models = None,
    output: options.OutputFile = None,
    format: Annotated[
        str,
        typer.Option(
            "--format",
            metavar="text|jsonl",
            help="text: the natural logarithm of the probability. jsonl: a JSON object per line, with those of tokens.",
        ),
    ] = "text",
    batch_size: options.BatchSize = None,
    precision: options.Precision = None,
    overwrite: options.OverwriteFiles = False,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Score given translations: probabilities and perplexity.

    Example: nmt score --src test.en --tgt test.de > test.scores
    """
    import_libraries("nmt.translation.translator")
    from nmt.translation.probability import score as score_pairs

    log_default_model(model)
    score_pairs(
        src=src,
        tgt=tgt,
        model=model or (),
        output=output,
        format=format,
        batch_size=batch_size,
        precision=precision,
        overwrite=overwrite,
        device=device,
        allowed_classes=allowed_classes or (),
    )


def serve(
    model: Annotated[
        list[Path] | None,
        typer.Option(
            "--model",
            "-m",
            metavar="DIR",
            help="Run or model directory; repeat it for more. Those of the same languages translate together. "
            "[default: the newest finished run under runs/]",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Address to listen on; 0.0.0.0 is all of this machine's.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 takes any that is free.")
    ] = 5000,
    api_keys: Annotated[
        list[str] | None, typer.Option("--api-key", metavar="KEY", help="Key that clients must give. Can be repeated.")
    ] = None,
    key_file: Annotated[
        Path | None,
        typer.Option(
            "--api-keys",
            metavar="FILE",
            help="File with such keys, one per line, hidden from other users; a line that begins with # is a comment.",
        ),
    ] = None,
    max_characters: Annotated[
        int, typer.Option("--max-characters", metavar="N", min=1, help="Characters of a request.")
    ] = 100000,
    max_sentences: Annotated[
        int, typer.Option("--max-sentences", metavar="N", min=1, help="Sentences of a request.")
    ] = 2000,
    max_queue: Annotated[
        int, typer.Option("--max-queue", metavar="N", min=1, help="Sentences that may wait for a model.")
    ] = 5000,
    requests_per_minute: Annotated[
        int | None,
        typer.Option(
            "--requests-per-minute",
            metavar="N",
            min=1,
            help="Requests of a client or a key, at once or evenly: up to twice as many in its first minute. "
            "[default: no limit]",
        ),
    ] = None,
    max_file_bytes: Annotated[
        int, typer.Option("--max-file-bytes", metavar="N", min=1, help="Bytes of a file to translate.")
    ] = 10485760,
    allowed_hosts: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="Name that the server is reached by. Can be repeated."),
    ] = None,
    allowed_origins: Annotated[
        list[str] | None,
        typer.Option(
            "--allow-origin", metavar="URL", help="Web pages that may use the server, or * for all. Can be repeated."
        ),
    ] = None,
    trusted_proxies: Annotated[
        list[str] | None,
        typer.Option(
            "--trust-proxy", metavar="ADDRESS", help="Reverse proxy whose X-Forwarded-For is trusted. Can be repeated."
        ),
    ] = None,
    keep: options.Keep = None,
    glossaries: Annotated[
        list[str] | None,
        typer.Option(
            "--glossary",
            metavar="[en-de[/NAME]=]FILE.tsv",
            help="Terms and the translations that they must have, for one direction or all, or for requests that give "
            "its name: term, tab, translation on each line. Can be repeated.",
        ),
    ] = None,
    log_format: Annotated[
        Literal["json", "text", "none"],
        typer.Option("--log", metavar="json|text|none", help="Log of requests, one line each, on standard error."),
    ] = "json",
    log_probes: Annotated[
        bool, typer.Option("--log-probes/--no-log-probes", help="Log answered requests of /health and /metrics too.")
    ] = True,
    beam_size: options.BeamSize = None,
    batch_size: options.BatchSize = None,
    device: options.Device = "auto",
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Serve models over HTTP: LibreTranslate's API, and a page.

    Ctrl-C and SIGTERM stop it when the requests at work are answered, and so does SIGHUP from its terminal. It needs
    more packages:
    pip install starlette uvicorn python-multipart lxml prometheus-client py3langid

    Example: nmt serve --model runs/en-de --model runs/de-en --port 5000
    """
    import_libraries("nmt.translation.translator")
    from nmt.serving.serve import exit_if_busy

    log_default_model(model)
    nmt.serve(
        model=model or (),
        host=host,
        port=port,
        api_keys=api_keys or (),
        key_file=key_file,
        max_characters=max_characters,
        max_sentences=max_sentences,
        max_queue=max_queue,
        requests_per_minute=requests_per_minute,
        max_file_bytes=max_file_bytes,
        allowed_hosts=allowed_hosts or (),
        allowed_origins=allowed_origins or (),
        trusted_proxies=trusted_proxies or (),
        keep=keep,
        glossaries=glossaries or (),
        log_format=log_format,
        log_probes=log_probes,
        beam_size=beam_size,
        batch_size=batch_size,
        device=device,
        allowed_classes=allowed_classes or (),
    )
    exit_if_busy()  # a model may still compute for a client that has gone


def _check_format(name: str) -> str:
    """Refuse an unknown format before missing options are named."""
    from nmt.exporting.formats import check_format

    return check_format(name)


def export(
    to: Annotated[
        str,
        typer.Option(
            "--to", metavar="FORMAT", callback=_check_format, help="Format: ctranslate2, onnx, argos, hub or html."
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="PATH", help="Folder, or file for argos and html, to write.")
    ],
    model: options.Model = None,
    against: Annotated[
        list[Path] | None,
        typer.Option(
            "--against",
            metavar="DIR",
            help="Another model of the same languages, shown beside it; for html. Can be repeated.",
        ),
    ] = None,
    quantization: Annotated[
        str | None,
        typer.Option(
            "--quantization",
            metavar="none|int8|float16",
            help="Number format of weights. [default: the format's own choice]",
        ),
    ] = None,
    keep: options.Keep = None,
    glossary: options.Glossary = None,
    overwrite: options.Overwrite = False,
    allowed_classes: options.AllowedClasses = None,
) -> None:
    """Write a model as another program reads it.

    Example: nmt export --model runs/mine --to ctranslate2 --output mine-ctranslate2
    """
    import_libraries("nmt.models.storage")
    log_default_model(model)
    nmt.export(
        to=to,
        output=output,
        model=model,
        against=against or (),
        quantization=quantization,
        keep=keep,
        glossary=glossary,
        overwrite=overwrite,
        allowed_classes=allowed_classes or (),
    )
