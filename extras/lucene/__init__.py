"""Files for Lucene, by Anserini and Pyserini: the command `smoothclir-anserini`."""
