"""Text in, sentence embeddings out: backbone → pooling → head, loaded, saved and exported."""

from lib.encoder.heads import build_head
from lib.encoder.model import Encoder
from lib.encoder.pooling import pool
from lib.encoder.pretrained import fitting_pooling

__all__ = ["Encoder", "build_head", "fitting_pooling", "pool"]
