"""Text in, sentence embeddings out: backbone → pooling → head, loaded, saved and exported."""

from lib.encoder.heads import build_head, pool
from lib.encoder.layers import dropout_of
from lib.encoder.load import fitting_pooling
from lib.encoder.model import Encoder
