"""Examples of every verb, as its help and the reference show them; a test parses each of them."""

EXAMPLES = {
    "train": (
        "heedful train reverse",
        "heedful train classify data=reviews.csv --out runs/reviews",
        "heedful train vit data=photos model.depth=6 training.steps=3000",
        "heedful train classify data=reviews.csv --out runs/reviews --resume",
    ),
    "sweep": (
        "heedful sweep classify data=reviews.csv training.rate=0.001,0.003 seed=1..5",
        "heedful sweep reverse data=toy model.depth=1,2 --jobs 2 --stop-behind 3",
    ),
    "eval": (
        "heedful eval runs/reviews",
        "heedful eval runs/reviews later.csv",
        "heedful eval runs/reverse --split valid",
    ),
    "predict": (
        'heedful predict runs/reviews "What a lovely film"',
        "heedful predict runs/reviews --in texts.csv --columns text --out answers.csv",
        'heedful predict runs/translate "A small dog runs ." --beams 5 --best 3',
        'heedful predict runs/book "Once upon a time" --temperature 0.8 --top-p 0.9 --stream',
    ),
    "look": (
        "heedful look runs/reverse attention2017 --out look.html",
        "heedful look runs/reverse attention2017 --layer decoder.blocks.0.cross --out look.png",
        "heedful look runs/photos photos/cat/1.png --rollout --out cat.png",
        'heedful look runs/book "it was too tired" --word it --against "it was too wide" --out it.png',
    ),
    "align": (
        'heedful align runs/translate "A small dog runs ."',
        'heedful align runs/translate "A small dog runs ." --out dog.png',
        "heedful align runs/translate --gold links.txt < pairs.tsv",
    ),
    "chat": ("heedful chat runs/chat-text", "heedful chat DIR --temperature 0.5 --max-new-tokens 100"),
    "check": ("heedful check runs/reverse",),
    "verify-resume": ("heedful verify-resume reverse data=toy training.steps=40 training.save_every=8 --cuts 2",),
    "table": ("heedful table runs/tiny runs/small", "heedful table runs/tiny runs/small --out sizes.html"),
    "recipes": ("heedful recipes", "heedful recipes translate"),
    "keys": ("heedful keys classify", "heedful keys translation dropout", "heedful keys vit training.rate"),
    "doctor": ("heedful doctor",),
    "plan": ("heedful plan translate model.size=big --gpus 64 --memory 80GB",),
    "convert": ("heedful convert runs/book book-hf --to hf", "heedful convert runs/reviews reviews.onnx --to onnx"),
    "bench": (
        "heedful bench",
        "heedful bench translate",
        "heedful bench attention --plot growth.png --json times.json",
    ),
    "completion": ("heedful completion bash",),
    "attention list": ("heedful attention list",),
    "attention explain": ("heedful attention explain performer --out performer.png",),
    "data list": ("heedful data list",),
    "data get": ("heedful data get multi30k", "heedful data get cifar10 --into /data"),
    "tokenizer train": ("heedful tokenizer train corpus.txt more.txt.gz --kind bpe --size 8000",),
    "tokenizer encode": ('heedful tokenizer encode tokenizer.json "A small dog runs ." --pieces',),
    "tokenizer decode": ("heedful tokenizer decode tokenizer.json 41 12 7",),
    "tokenizer explain": ('heedful tokenizer explain tokenizer.json "runs"',),
}


def epilog(verb: str) -> str | None:
    """The examples of a verb, as the end of its help."""
    found = EXAMPLES.get(verb, ())
    return "\n\n".join(("Examples:", *found)) if found else None
