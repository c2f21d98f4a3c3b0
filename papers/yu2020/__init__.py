"""Yu and Allan 2020, "A Study of Neural Matching Models for Cross-lingual IR": a plug-in.

`--plugin=tf_smoothclir.papers.yu2020` brings its networks as values of `--reranker`.
"""

from __future__ import annotations

from tf_smoothclir.plugins import register

for _name, _class, _help in (
    ("knrm", "Knrm", "K-NRM, kernels over similarities of words (Xiong et al. 2017)."),
    ("drmm", "Drmm", "DRMM, histograms of similarities of words (Guo et al. 2016)."),
    (
        "match_pyramid",
        "MatchPyramid",
        "MatchPyramid, a convolution over similarities of words (Pang et al. 2016).",
    ),
):
    register("reranker", _name, f"{__name__}.networks:{_class}", help=_help)
