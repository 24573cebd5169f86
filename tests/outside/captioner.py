"""An image captioner from outside: the ResNet reads, and the decoder of a Transformer writes what an image shows."""

from dataclasses import replace
from typing import Literal

from heedful.attention import Context, Everything
from heedful.inputs.grids import SineGrid
from heedful.looking.overlay import Overlay
from heedful.metrics.exact_match import ExactMatch
from heedful.models.docked_cases import Docked
from heedful.models.family import Family
from heedful.models.multimodal.composite import TOY, Composite, CompositeSpec
from heedful.models.vision.resnet import ResNetSpec
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.image_inputs import enlarged
from heedful.pipelines.seq2seq import Seq2Seq, Seq2SeqCollate
from heedful.tasks.task import Task
from heedful.views.written_samples import WrittenSamples
from tests.outside.captioned_images import CaptionsLearned, DrawnCaptions, ImageSource, encode


class CaptionerSpec(CompositeSpec):
    family: Literal["captioner"] = "captioner"
    encoder: ResNetSpec


class Captioner(Composite):
    """Looks at every cell of an image's last feature map, which says where it stands."""

    def cells(self, images):  # B C H W -> B M h w
        return self.encoder.features(images)

    def context(self, batch):
        cells = self.cells(batch["image"])
        states = self.bridge(cells.flatten(2).mT)
        return Context(SineGrid(states.shape[2])(states, tuple(cells.shape[2:])), Everything())


class Captioning(Seq2Seq):
    """Each word of a caption shows where it looks: the mean of the heads of every cross-attention, over the image."""

    def look(self, model, given, learned):
        seen = super().look(model, given, learned)
        image = enlarged(given, learned.images, self.input).transpose(1, 2, 0)
        shape = tuple(1 + int(number) for number in seen.maps[-1].columns[-1].split(","))
        for map in (one for one in seen.maps if one.path.endswith("cross")):
            rows = zip(map.rows, map.weights.mean(0).unflatten(1, shape), strict=True)
            over = Overlay(map.path, image, tuple((word.strip(), row) for word, row in rows))
            seen = replace(seen, sections=(*seen.sections, over))
        return seen


ENCODER = {"family": "resnet", "channels": 3, "high": 16, "wide": 16, "width": 4, "depths": [1, 1]}
FAMILY = Family(CaptionerSpec, Captioner, {**TOY, "encoder": ENCODER}, Docked)
SIDES = {"collate": Seq2SeqCollate(ImageSource()), "pipeline": Captioning("the path of an image", ImageSource())}
DATA = {"readers": {"drawn": DrawnCaptions}, "fit": CaptionsLearned.fit, "learned": CaptionsLearned, "encode": encode}
LOSS = {"objective": TeacherForcing(), "metrics": (ExactMatch(),), "watch": "exact", "families": ("captioner",)}
TASK = Task(name="captions", **DATA, **SIDES, **LOSS, table=WrittenSamples("Images it never saw", judged=True))
