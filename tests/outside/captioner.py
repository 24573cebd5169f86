"""An image captioner from outside: the ResNet reads, and the decoder of a Transformer writes what an image shows."""

from dataclasses import replace
from typing import Literal

from heedful.attention import Context, Everything
from heedful.inputs.grids import SineGrid
from heedful.metrics.exact_match import ExactMatch
from heedful.models.multimodal.composite import FAMILY as COMPOSITE
from heedful.models.multimodal.composite import Composite, CompositeSpec
from heedful.models.vision.resnet import ResNetSpec
from heedful.objectives.seq2seq import TeacherForcing
from heedful.pipelines.seq2seq_pipeline import Seq2SeqCollate
from heedful.tasks.task import Task
from heedful.views.written_samples import WrittenSamples
from tests.outside.captioning import Captioning, CaptionsLearned, ImageSource, encode
from tests.outside.drawn_captions import DrawnCaptions


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


ENCODER = {"family": "resnet", "channels": 3, "high": 16, "wide": 16, "width": 4, "depths": [1, 1]}
FAMILY = replace(COMPOSITE, spec=CaptionerSpec, model=Captioner, toy={**COMPOSITE.toy, "encoder": ENCODER})
TASK = Task(
    name="captions",
    readers={"drawn": DrawnCaptions},
    fit=CaptionsLearned.fit,
    learned=CaptionsLearned,
    encode=encode,
    collate=Seq2SeqCollate(ImageSource()),
    objective=TeacherForcing(),
    metrics=(ExactMatch(),),
    watch="exact",
    pipeline=Captioning("the path of an image", ImageSource()),
    table=WrittenSamples("Images it never saw", "image", "caption", judged=True),
    families=("captioner",),
)
