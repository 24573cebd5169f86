"""Safe reading and writing of files, whoever wrote them: opening, JSON and YAML, safetensors, sealed folders."""
