"""The small RAG program that `rag-judge demo` grades. Nothing else in the package may import it."""
