"""Makes the files beside it with the tools' own libraries; run by hand, in an environment of its own, not by the tests.

    python -m venv v
    v/bin/pip install ragas 'langchain-community<0.4' deepeval …        # README.md has the whole list
    v/bin/python tests/foreign/make_files.py PART…                      # and says what each part needs

Ids and times that a library draws at random differ from run to run, so that a file made anew differs from the kept
one in these; the tests therefore read the kept files.
"""
# The libraries are not installed beside the project, whose type checks know nothing of them.
# mypy: ignore-errors

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

HERE = Path(__file__).resolve().parent
RETURNS = "Kites can be returned within 30 days if the line was never cut."
FEE = "退货运费由买家承担,质量问题除外。"
REPAIR = "A torn sail is repaired for 12 euros | frames are not repaired."
NOTHING = "I do not know; the handbook says nothing about it."


def write_json(name: str, value: Any) -> None:
    (HERE / name).write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


def write_lines(name: str, rows: list[Any]) -> None:
    lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (HERE / name).write_text("".join(lines), encoding="utf-8")


# --- datasets ------------------------------------------------------------------------------------------------------


def ragas() -> None:
    from ragas import EvaluationDataset, MultiTurnSample, SingleTurnSample
    from ragas.messages import AIMessage, HumanMessage

    samples = [
        SingleTurnSample(
            user_input="How long can I return a kite?",
            retrieved_contexts=[RETURNS, FEE],
            retrieved_context_ids=["returns#1", 7],
            reference_context_ids=["returns#1"],
            reference_contexts=[RETURNS],
            response="Within 30 days [1].",
            reference="30 days, if the line was never cut.",
            query_style="PERFECT_GRAMMAR",
        ),
        SingleTurnSample(
            user_input="退货的运费谁出?", retrieved_contexts=[FEE], response="买家出。", reference="买家承担"
        ),
        SingleTurnSample(user_input="Who won the kite cup?", retrieved_contexts=[], response=NOTHING),
        SingleTurnSample(user_input="Do you repair sails?", reference="Yes, for 12 euros."),
    ]
    dataset = EvaluationDataset(samples=samples)
    dataset.to_jsonl(HERE / "ragas.jsonl")
    dataset.to_csv(HERE / "ragas.csv")
    numbered = SingleTurnSample(user_input="Do kites float?", retrieved_contexts=[FEE, RETURNS], response="No.")
    numbered.retrieved_context_ids, numbered.reference_context_ids = [7, 12345678901234567], [7]
    EvaluationDataset(samples=[numbered]).to_pandas().to_parquet(HERE / "ragas.parquet")
    turns = [
        HumanMessage(content="我想退一只风筝。"),
        AIMessage(content="可以,线没有剪断就行。"),
        HumanMessage(content="运费谁出?"),
        AIMessage(content="由买家承担。"),
    ]
    EvaluationDataset(samples=[MultiTurnSample(user_input=turns, reference="买家承担")]).to_jsonl(
        HERE / "ragas_turns.jsonl"
    )


def deepeval() -> None:
    from deepeval.dataset import ConversationalGolden, EvaluationDataset, Golden
    from deepeval.test_case import LLMTestCase, RetrievedContextData, Turn
    from deepeval.test_run import TestRunManager
    from deepeval.test_run.api import LLMApiTestCase

    goldens = [
        Golden(
            input="How long can I return a kite?",
            actual_output="Within 30 days.",
            expected_output="30 days",
            retrieval_context=[RetrievedContextData(context=RETURNS, source="returns#1"), FEE],
            context=[RETURNS],
            name="returns",
            additional_metadata={"topic": "returns"},
        ),
        Golden(input="Do you repair sails?", actual_output="For 12 euros.", retrieval_context=[REPAIR]),
        Golden(input="谁赢了风筝杯?", actual_output="不知道。", retrieval_context=[]),
        Golden(input="How heavy is the Swift kite?", expected_output="410 grams"),
    ]
    dataset = EvaluationDataset(goldens=goldens)
    for kind in ("json", "jsonl", "csv"):
        dataset.save_as(kind, str(HERE), "deepeval")
    talk = ConversationalGolden(
        scenario="A customer wants to return a kite",
        expected_outcome="The customer knows who pays",
        turns=[
            Turn(role="user", content="我想退一只风筝。"),
            Turn(role="assistant", content="可以。"),
            Turn(role="user", content="运费谁出?"),
            Turn(role="assistant", content="由买家承担。", retrieval_context=[FEE]),
        ],
    )
    untold = ConversationalGolden(scenario="A customer asks for a repair", expected_outcome="Knows the price")
    EvaluationDataset(goldens=[talk, untold]).save_as("json", str(HERE), "deepeval_turns")
    case = LLMTestCase(
        input="How long can I return a kite?", actual_output="30 days.", retrieval_context=[RETURNS], tags=["returns"]
    )
    api = LLMApiTestCase(name="test_case_0", success=True, order=0, **case.model_dump(by_alias=True, include=_API))
    manager = TestRunManager()
    manager.create_test_run()
    manager.test_run.test_cases.append(api)
    manager.save_to_disk = True
    manager.save_test_run(str(HERE / "deepeval_run.json"), save_under_key="testRunData")  # as .latest_test_run.json is


_API = {"input", "actual_output", "expected_output", "context", "retrieval_context", "tags"}


def ir() -> None:
    import ranx
    from beir.datasets.data_loader import GenericDataLoader

    folder = HERE / "beir"
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    queries = [
        {"_id": "1", "text": "How long can I return a kite?", "metadata": {"lang": "en"}},
        {"_id": "2", "text": "退货的运费谁出?", "metadata": {}},
        {"_id": "3", "text": "Is there a kite cup?", "metadata": {}},
    ]
    corpus = [
        {"_id": "returns", "title": "Returns", "text": RETURNS, "metadata": {}},
        {"_id": "fee", "title": "", "text": FEE, "metadata": {}},
    ]
    write_lines("beir/queries.jsonl", queries)
    write_lines("beir/corpus.jsonl", corpus)
    table = "query-id\tcorpus-id\tscore\n1\treturns\t2\n1\tfee\t0\n2\tfee\t1\n"
    (folder / "qrels" / "test.tsv").write_text(table, encoding="utf-8")
    loaded_corpus, loaded_queries, qrels = GenericDataLoader(str(folder)).load(split="test")
    assert (len(loaded_corpus), sorted(loaded_queries), qrels["1"]) == (2, ["1", "2"], {"returns": 2, "fee": 0})
    ranx.Qrels(qrels).save(str(HERE / "trec.qrels"), kind="trec")
    run = ranx.Run({"1": {"fee": 0.25, "returns": 0.75}, "2": {"fee": 12.5}}, name="bm25")
    run.save(str(HERE / "trec.run"), kind="trec")


def promptfoo() -> None:
    """Needs node and the npm package promptfoo; PROMPTFOO names its main.js."""
    provider = """class Shop {
  constructor(o) { this.version = o.config.version; }
  id() { return 'shop'; }
  async callApi(prompt, {vars}) {
    return vars.down ? {error: 'upstream timeout'} : {output: vars[this.version]};
  }
}
module.exports = Shop;
"""
    tests = [
        {
            "vars": {"query": "How long can I return a kite?", "context": RETURNS, "v1": "30 days.", "v2": "60 days."},
            "metadata": {"topic": "returns"},
            "assert": [{"type": "icontains", "value": "30 days"}, {"type": "not-contains", "value": "60 days"}],
        },
        {
            "vars": {"query": "退货的运费谁出?", "context": FEE, "v1": "不知道。", "v2": "买家承担。"},
            "assert": [{"type": "contains-any", "value": ["买家承担", "买家出"]}],
        },
        {"vars": {"query": "Who won the kite cup?", "context": "", "down": True}},
    ]
    versions = [{"id": "file://provider.js", "label": v, "config": {"version": v}} for v in ("v1", "v2")]
    config = {
        "description": "kite shop",
        "prompts": ["{{context}}\n{{query}}"],
        "providers": versions,
        "tests": tests,
    }
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "provider.js").write_text(provider, encoding="utf-8")
        (Path(folder) / "config.json").write_text(json.dumps(config, ensure_ascii=False), encoding="utf-8")
        quiet = {"PROMPTFOO_DISABLE_TELEMETRY": "1", "PROMPTFOO_DISABLE_UPDATE": "1", "PROMPTFOO_CONFIG_DIR": folder}
        outputs = ["-o", "out.json", "-o", "out.jsonl"]
        subprocess.run(
            ["node", os.environ["PROMPTFOO"], "eval", "-c", "config.json", "--no-cache", *outputs],
            cwd=folder,
            env={**os.environ, **quiet},
            check=False,  # failed assertions end it with 100
        )
        whole = json.loads((Path(folder) / "out.json").read_text(encoding="utf-8"))
        kept = {name: whole[name] for name in ("evalId", "results", "shareableUrl")}
        write_json("promptfoo.json", kept)
        (HERE / "promptfoo.jsonl").write_bytes((Path(folder) / "out.jsonl").read_bytes())


# --- traces --------------------------------------------------------------------------------------------------------


@contextmanager
def listening(handle: Any) -> Iterator[str]:
    """A server on loopback that hands (method, path, body) to `handle` and answers with what that returns."""

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            reply = json.dumps(handle(self.command, self.path, body)).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.end_headers()
            self.wfile.write(reply)

        do_GET = do_POST = do_PATCH = answer

        def log_message(self, *_: object) -> None:
            return

    server = HTTPServer(("127.0.0.1", 0), Handler)
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()


def langsmith() -> None:
    """The client's own requests, caught on loopback, and read into the schema in which runs are exported."""
    from langchain_core.documents import Document
    from langsmith import Client, traceable
    from langsmith.schemas import Example, Run

    caught: dict[str, dict[str, Any]] = {}

    def handle(method: str, path: str, body: bytes) -> Any:
        if method in ("POST", "PATCH") and "/runs" in path:
            sent = json.loads(body)
            caught.setdefault(sent["id"], {}).update({k: v for k, v in sent.items() if v is not None})
        return {}

    os.environ["LANGSMITH_TRACING"] = "true"
    with listening(handle) as url:
        client = Client(api_url=url, api_key="none", auto_batch_tracing=False)

        @traceable(run_type="retriever", client=client)
        def search(query: str) -> list[dict[str, Any]]:
            found = [Document(id="fee#1", page_content=FEE, metadata={"distance": 0.21, "tenant": "eu"})]
            return [] if "cup" in query else [document.model_dump() for document in found]

        @traceable(run_type="llm", client=client, metadata={"ls_model_name": "kite-1"})
        def generate(question: str, documents: list[Any]) -> str:
            if not documents:
                raise TimeoutError("model timed out")
            return "由买家承担【1】。"

        @traceable(run_type="chain", client=client, tags=["shop"])
        def ask(question: str) -> dict[str, Any]:
            return {"answer": generate(question, search(question))}

        @traceable(run_type="chain", client=client)
        def health_check() -> dict[str, Any]:
            return {"ok": True}

        ask("退货的运费谁出?")
        try:
            ask("Who won the kite cup?")
        except TimeoutError:
            print("the traced call failed, as meant")
        health_check()
        client.flush()
    runs = [Run(**{"session_id": "00000000-0000-0000-0000-00000000000a", **run}) for run in caught.values()]
    write_lines("langsmith.jsonl", [_slim(run.model_dump(mode="json", exclude_none=True)) for run in runs])
    example = Example(
        id="00000000-0000-0000-0000-0000000000e1",
        dataset_id="00000000-0000-0000-0000-0000000000d1",
        inputs={"question": "How long can I return a kite?"},
        outputs={"answer": "30 days"},
        metadata={"dataset_split": ["base"]},
    )
    write_lines("langsmith_dataset.jsonl", [example.model_dump(mode="json", exclude_none=True)])


def _slim(run: dict[str, Any]) -> dict[str, Any]:
    run.get("extra", {}).pop("runtime", None)  # says what machine it was
    if "error" in run:
        run["error"] = run["error"].replace(str(HERE), "shop")
    metadata = run.get("extra", {}).get("metadata", {})
    run["extra"]["metadata"] = {k: v for k, v in metadata.items() if not k.isupper() and k != "revision_id"}
    return run


def langfuse() -> None:
    """The rows of the API for observations, through its own models (langfuse 5); the service is not asked."""
    from langfuse.api.commons.types.dataset_item import DatasetItem
    from langfuse.api.commons.types.observation_v2 import ObservationV2
    from langfuse.api.core.pydantic_utilities import parse_obj_as

    start = datetime(2026, 3, 1, 9, 0, tzinfo=UTC)
    plain = {"startTime": start, "endTime": start + timedelta(seconds=2), "projectId": "p1", "environment": "default"}
    documents = [{"id": "returns#1", "content": RETURNS, "score": 0.83}, {"id": "fee#1", "content": FEE, "score": 0.4}]
    rows = [
        {
            "id": "o1",
            "traceId": "t1",
            "type": "CHAIN",
            "isRootObservation": True,
            "name": "ask",
            "input": {"question": "How long can I return a kite?"},
            "output": {"answer": "30 days [returns#1]"},
            "tags": ["shop"],
            "latency": 2.0,
        },
        {
            "id": "o2",
            "traceId": "t1",
            "type": "RETRIEVER",
            "parentObservationId": "o1",
            "name": "search",
            "input": "return kite",
            "output": documents,
        },
        {
            "id": "o3",
            "traceId": "t1",
            "type": "GENERATION",
            "parentObservationId": "o1",
            "name": "generate",
            "model": "kite-1",
            "input": [{"role": "user", "content": "…"}],
            "output": "30 days [returns#1]",
        },
        {
            "id": "o4",
            "traceId": "t2",
            "type": "SPAN",
            "isRootObservation": True,
            "name": "ask",
            "level": "ERROR",
            "statusMessage": "timeout",
            "input": "谁赢了风筝杯?",
        },
        {"id": "o5", "traceId": "t3", "type": "EVENT", "isRootObservation": True, "name": "heartbeat"},
    ]
    made = [parse_obj_as(ObservationV2, {**plain, **row}) for row in rows]
    write_lines("langfuse.jsonl", [json.loads(one.model_dump_json(by_alias=True, exclude_none=True)) for one in made])
    stated = {"id": "d1", "status": "ACTIVE", "datasetId": "ds", "datasetName": "shop", "mediaReferences": []}
    stated |= {
        "input": {"question": "退货的运费谁出?"},
        "expectedOutput": {"answer": "买家承担"},
        "metadata": {"level": 1},
    }
    item = parse_obj_as(DatasetItem, {**stated, "createdAt": start, "updatedAt": start})
    write_lines("langfuse_dataset.jsonl", [json.loads(item.model_dump_json(by_alias=True, exclude_none=True))])


def langfuse_traces() -> None:
    """A trace with its observations inside, through the models of langfuse 3."""
    from langfuse.api.resources.commons.types.trace_with_full_details import TraceWithFullDetails

    start = "2026-03-01T09:00:00Z"
    end = "2026-03-01T09:00:02Z"
    usage = {"input": 10, "output": 3, "total": 13, "unit": "TOKENS"}
    plain = {"traceId": "t9", "startTime": start, "endTime": end, "environment": "default", "level": "DEFAULT"}
    plain |= {"modelParameters": {}, "usage": usage, "usageDetails": {}, "costDetails": {}, "metadata": {}}
    found = [{"pageContent": FEE, "metadata": {"doc_id": "fee#1"}}]
    messages = [
        {"role": "system", "content": "You sell kites."},
        {"role": "user", "content": "我想退一只风筝。"},
        {"role": "assistant", "content": "可以。"},
        {"role": "user", "content": "运费谁出?"},
    ]
    trace = TraceWithFullDetails(
        id="t9",
        timestamp=start,
        name="ask",
        input={"messages": messages},
        output={"role": "assistant", "content": "由买家承担。"},
        sessionId="s1",
        tags=["shop"],
        public=False,
        environment="default",
        htmlPath="/trace/t9",
        latency=2.0,
        totalCost=0.0,
        scores=[],
        observations=[{**plain, "id": "r1", "type": "RETRIEVER", "name": "search", "input": "运费", "output": found}],
    )
    write_json("langfuse_traces.json", [json.loads(trace.json())])


def otel() -> None:
    os.environ["OTEL_SEMCONV_STABILITY_OPT_IN"] = "gen_ai_latest_experimental"
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    from opentelemetry.util.genai.handler import get_telemetry_handler
    from opentelemetry.util.genai.types import InputMessage, OutputMessage, RetrievalDocument, TextPart

    provider, memory = _tracing()
    handler = get_telemetry_handler(tracer_provider=provider)

    def said(role: str, text: str) -> Any:
        return InputMessage(role=role, parts=[TextPart(content=text)])

    with handler.workflow("shop") as flow:
        earlier = [said("user", "Hello"), said("assistant", "Hello! What about?")]
        flow.input_messages = [*earlier, said("user", "How long can I return a kite?")]
        with handler.retrieval(data_source_id="handbook") as found:
            found.query_text = "return period kite"
            found.documents = [RetrievalDocument(id="returns#1", score=0.9), RetrievalDocument(id="fee#1", score=0.3)]
        with handler.inference("openai", request_model="kite-1") as chat:
            chat.input_messages = [said("user", f"Context: {RETURNS}\nQuestion: How long can I return a kite?")]
            chat.output_messages = [OutputMessage(role="assistant", parts=[TextPart(content="30 days [1]")])]
        flow.output_messages = [OutputMessage(role="assistant", parts=[TextPart(content="30 days [1]")])]
    with handler.inference("openai", request_model="kite-1") as chat:
        chat.input_messages = [said("user", "退货的运费谁出?")]
        chat.output_messages = [OutputMessage(role="assistant", parts=[TextPart(content="买家承担。")])]
    spans = memory.get_finished_spans()
    (HERE / "otel_console.txt").write_text("".join(span.to_json() + "\n" for span in spans), encoding="utf-8")
    _write_otlp("otel.json", spans)


def openinference() -> None:
    from openinference.instrumentation import TracerProvider, using_session
    from openinference.semconv.trace import DocumentAttributes, RerankerAttributes, SpanAttributes

    provider, memory = _tracing(TracerProvider())
    tracer = provider.get_tracer("shop")

    def documents(prefix: str, found: list[tuple[str, str, float]]) -> dict[str, Any]:
        named = {}
        for i, (doc, text, score) in enumerate(found):
            named[f"{prefix}.{i}.{DocumentAttributes.DOCUMENT_ID}"] = doc
            named[f"{prefix}.{i}.{DocumentAttributes.DOCUMENT_CONTENT}"] = text
            named[f"{prefix}.{i}.{DocumentAttributes.DOCUMENT_SCORE}"] = score
            named[f"{prefix}.{i}.{DocumentAttributes.DOCUMENT_METADATA}"] = json.dumps({"page": i + 1})
        return named

    returns, fee = ("returns#1", RETURNS, 0.4), ("fee#1", FEE, 0.6)
    start = tracer.start_as_current_span
    with using_session("s1"), start("ask", openinference_span_kind="chain") as root:
        root.set_input("How long can I return a kite?")
        with start("search", openinference_span_kind="retriever") as span:
            span.set_input("return kite")
            span.set_attributes(documents(SpanAttributes.RETRIEVAL_DOCUMENTS, [fee, returns]))
        with start("rerank", openinference_span_kind="reranker") as span:
            span.set_attributes(documents(RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS, [returns, fee]))
        with start("generate", openinference_span_kind="llm") as span:
            span.set_attribute(SpanAttributes.LLM_MODEL_NAME, "kite-1")
        root.set_output("30 days [1]")
    with start("ask", openinference_span_kind="chain") as root:
        root.set_input({"question": "退货的运费谁出?"})
        with start("search", openinference_span_kind="retriever") as span:
            span.set_attributes(documents(SpanAttributes.RETRIEVAL_DOCUMENTS, [("fee#1", FEE, 0.9)]))
        root.set_output({"answer": "买家承担。"})
    with start("warm up", openinference_span_kind="tool"):
        print("a trace without a question")
    spans = memory.get_finished_spans()
    _write_otlp("openinference.json", spans)
    if url := os.environ.get("PHOENIX"):
        _through_phoenix(url, spans)


def _through_phoenix(url: str, spans: Any) -> None:
    """The same spans, sent to a Phoenix server and fetched from it as a data frame and as JSON."""
    import time

    import requests
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
    from phoenix.client import Client

    headers = {"content-type": "application/x-protobuf"}
    requests.post(f"{url}/v1/traces", encode_spans(spans).SerializeToString(), headers=headers).raise_for_status()
    client = Client(base_url=url)
    frame = client.spans.get_spans_dataframe(project_identifier="default")
    while len(frame) < len(spans):  # the server inserts in the background
        time.sleep(0.5)
        frame = client.spans.get_spans_dataframe(project_identifier="default")
    frame.to_parquet(HERE / "phoenix.parquet")
    frame.to_csv(HERE / "phoenix.csv")
    write_lines("phoenix.jsonl", [dict(span) for span in client.spans.get_spans(project_identifier="default")])


def _tracing(provider: Any = None) -> Any:
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    provider, memory = provider or TracerProvider(), InMemorySpanExporter()
    provider.add_span_processor(SimpleSpanProcessor(memory))
    return provider, memory


def _write_otlp(name: str, spans: Any) -> None:
    """OTLP as JSON: as protobuf writes it, but with ids in hexadecimal, as the protocol's JSON form asks."""
    from base64 import b64decode

    from google.protobuf.json_format import MessageToDict
    from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans

    whole = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in whole["resourceSpans"]:
        for scope in resource["scopeSpans"]:
            for span in scope["spans"]:
                for key in ("traceId", "spanId", "parentSpanId"):
                    if key in span:
                        span[key] = b64decode(span[key]).hex()
    write_json(name, whole)


PARTS = [ragas, deepeval, ir, promptfoo, langsmith, langfuse, langfuse_traces, otel, openinference]

if __name__ == "__main__":
    for part in PARTS:
        if part.__name__ in sys.argv[1:]:
            part()
