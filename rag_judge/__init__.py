"""rag-judge: grades the answers of a RAG system and says how far the grades can be trusted.

Read the modules in the order of `tests/test_house.py`: that is also the order in which data flows.
"""

__version__ = "0.1.0"
