"""Files for Elasticsearch and OpenSearch, which are built on Lucene: `smoothclir-lucene`."""
