#!/usr/bin/env python3
"""Reads the beginning of a streamed response, closes the connection, and resumes it.

    resume.py [TEXT]

Events are numbered. The rest begins after the last one that was read; one number is left out where the answer was
interrupted.
"""
import http.client
import json
import os
import sys
import urllib.parse

URL = urllib.parse.urlsplit(os.environ.get("SKEIN_URL", "http://127.0.0.1:8000"))
KEY = os.environ.get("SKEIN_KEY", "")
ENDS = ("response.completed", "response.incomplete", "response.failed")


def events(method, path, body=None, at_most=None):
    """The events of a stream; after `at_most` of them the connection is closed."""
    connection = http.client.HTTPConnection(URL.hostname, URL.port or 80)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {KEY}"} if KEY else {})
    connection.request(method, path, json.dumps(body) if body else None, headers)
    answer = connection.getresponse()
    if answer.status != 200:
        sys.exit(f"{answer.status}: {answer.read().decode()}")
    count = 0
    for line in answer:
        if line.startswith(b"data: "):
            event = json.loads(line[6:])
            yield event
            count += 1
            if event["type"] in ENDS or count == at_most:
                break
    connection.close()


def main():
    text = sys.argv[1] if len(sys.argv) > 1 else "Tell me a story."
    seen = list(events("POST", "/v1/responses", {"input": text, "max_output_tokens": 200, "stream": True}, at_most=8))
    name, last = seen[0]["response"]["id"], seen[-1]["sequence_number"]
    print(f"[closed after event {last}]", file=sys.stderr)
    if seen[-1]["type"] not in ENDS:
        seen += events("GET", f"/v1/responses/{name}?stream=true&starting_after={last}")
    numbers = [e["sequence_number"] for e in seen]
    assert numbers == sorted(set(numbers)), "an event came twice"
    print("".join(e["delta"] for e in seen if e["type"] == "response.output_text.delta"))


if __name__ == "__main__":
    main()
