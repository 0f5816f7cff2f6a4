#!/usr/bin/env python3
"""A chat in a terminal. The server keeps the conversation, so only the new message is sent.

    chat.py [SESSION]     reads a message a line; an empty line or the end of the input ends
"""
import json
import os
import sys
import urllib.error
import urllib.request

URL = os.environ.get("SKEIN_URL", "http://127.0.0.1:8000")
KEY = os.environ.get("SKEIN_KEY", "")


def stream(path, body):
    """The events of a streamed answer, parsed."""
    headers = {"Content-Type": "application/json"}
    if KEY:
        headers["Authorization"] = f"Bearer {KEY}"
    request = urllib.request.Request(URL + path, json.dumps({**body, "stream": True}).encode(), headers)
    with urllib.request.urlopen(request) as answer:
        for line in answer:
            data = line.decode().strip().removeprefix("data: ")
            if line.startswith(b"data: ") and data != "[DONE]":
                yield json.loads(data)


def say(session, text):
    body = {"session_id": session, "messages": [{"role": "user", "content": text}], "max_tokens": 512}
    for event in stream("/v1/chat/completions", body):
        if "error" in event:
            raise RuntimeError(event["error"]["message"])
        for choice in event["choices"]:
            print(choice["delta"].get("content", ""), end="", flush=True)
    print()


def main():
    session = sys.argv[1] if len(sys.argv) > 1 else "terminal"
    for line in sys.stdin:
        if not line.strip():
            break
        try:
            say(session, line.strip())
        except urllib.error.HTTPError as e:
            sys.exit(f"{e.code}: {json.load(e)['error']['message']}")


if __name__ == "__main__":
    main()
