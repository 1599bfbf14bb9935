"""The former name of `ralf.summarize`, deprecated: what the documentation named stays importable."""

import warnings

from ralf.summarize import Segment as Segment, Summarizer as Summarizer, Summary as Summary

warnings.warn("ralf.summarizers is now ralf.summarize", DeprecationWarning, stacklevel=2)
