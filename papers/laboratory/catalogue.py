"""The experiments of all papers, by their names on the command line."""

from tf_smoothclir.papers.li2018.experiments import LI_2018
from tf_smoothclir.papers.liu2020.experiments import LIU_2020
from tf_smoothclir.papers.yu2020.experiments import YU_2020

EXPERIMENTS = {experiment.name: experiment for experiment in (*LIU_2020, *YU_2020, *LI_2018)}
