"""Files for Lucene, Elasticsearch and OpenSearch: the command `smoothclir-lucene`."""
