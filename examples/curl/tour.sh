#!/usr/bin/env bash
# A tour of the API: chat, stream, session, fork, export and import. Any refusal ends it.
set -euo pipefail
U=${SKEIN_URL:-http://127.0.0.1:8000}
auth=()
[[ -z ${SKEIN_KEY:-} ]] || auth=(-H "Authorization: Bearer $SKEIN_KEY")
ask() { curl --fail-with-body --no-progress-meter "${auth[@]}" "$@"; }

echo "== models"
ask "$U/v1/models"

echo; echo "== a chat"
ask "$U/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "What is Skein?"}], "max_tokens": 32}'

echo; echo "== the same as a stream"
ask -N "$U/v1/chat/completions" -d '{"messages": [{"role": "user", "content": "What is Skein?"}], "max_tokens": 8, "stream": true}'

name=tour-$$
echo "== a session of two turns"
ask "$U/v1/chat/completions" -d "{\"session_id\": \"$name\", \"messages\": [{\"role\": \"user\", \"content\": \"I am Anna.\"}], \"max_tokens\": 32}"
ask "$U/v1/chat/completions" -d "{\"session_id\": \"$name\", \"messages\": [{\"role\": \"user\", \"content\": \"Who am I?\"}], \"max_tokens\": 32}"

echo; echo "== a fork of its first turn, and what was said"
ask "$U/v1/sessions/$name/fork" -d "{\"to\": \"$name-fork\", \"version\": 1}"
ask "$U/v1/sessions/$name?transcript=true"

echo; echo "== out as a file and in again"
file=$(mktemp)
trap 'rm -f "$file"' EXIT
ask "$U/v1/sessions/$name/export" -o "$file"
ask -X PUT --data-binary "@$file" "$U/v1/sessions/$name-copy"

echo; echo "== removed"
for each in "$name" "$name-fork" "$name-copy"; do ask -X DELETE "$U/v1/sessions/$each"; echo; done
