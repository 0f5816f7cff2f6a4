// The think splitter: what a whole text splits into, and that the same comes out however the text is cut: at every pair
// of bytes, and byte by byte.
#include <boost/test/unit_test.hpp>
#include <vector>

#include "protocol/chat/think_splitter.hpp"

namespace skein::protocol {
namespace {

struct split_case {
  answer_form form;
  std::string text, reasoning, content;
  first_newlines newlines = first_newlines::lead;
};

const std::vector<split_case> cases{
    {answer_form::raw, ">\n\nx</think>y", "", ">\n\nx</think>y"},
    {answer_form::raw, "", "", ""},
    {answer_form::direct, " Hello", "", "Hello"},
    {answer_form::direct, "\n> a quotation", "", "> a quotation"},
    {answer_form::direct, "> a quotation", "", "> a quotation"},
    {answer_form::direct, " \n  indented", "", "  indented"},
    {answer_form::closing, ">\n\nHello", "", "Hello"},
    {answer_form::closing, ">Hello", "", "Hello"},
    {answer_form::closing, "Hello\n>x", "", "Hello\n>x"},
    {answer_form::closing, ">\n> a quotation", "", "> a quotation"},
    {answer_form::closing, ">\n indented", "", " indented"},
    {answer_form::closing, ">\n\n", "", ""},
    {answer_form::closing, ">\na </think> b", "", "a </think> b"},
    {answer_form::thinking, ">\nI think</think>\n\nSo.", "I think", "So."},
    {answer_form::thinking, ">I think\n</think>So.\n", "I think\n", "So.\n"},
    {answer_form::thinking, ">\n</think>\n> quoted", "", "> quoted"},
    {answer_form::thinking, ">\nno end", "no end", ""},
    {answer_form::thinking, ">a </thin", "a </thin", ""},
    {answer_form::thinking, ">a <</think>b", "a <", "b"},
    {answer_form::thinking, ">a </</think>b", "a </", "b"},
    {answer_form::thinking, ">a </think </thinks></think>b</think>c", "a </think </thinks>", "b</think>c"},
    {answer_form::thinking, "你好</think>\n世界", "你好", "世界"},
    {answer_form::thinking, "", "", ""},
    {answer_form::raw, "\nyes", "", "\nyes", first_newlines::content},
    {answer_form::direct, " \nyes", "", "\nyes", first_newlines::content},
    {answer_form::direct, "\n yes", "", "\n yes", first_newlines::content},
    {answer_form::closing, ">\n\nyes", "", "\n\nyes", first_newlines::content},
    {answer_form::closing, ">>yes", "", ">yes", first_newlines::content},
    {answer_form::thinking, ">\n\nI think\n</think>\n\nyes", "I think\n", "\n\nyes", first_newlines::content},
    {answer_form::thinking, ">\n</think>\n", "", "\n", first_newlines::content},
};

think_splitter::parts split(const split_case& of, const std::vector<std::string_view>& pieces) {
  think_splitter splitter(of.form, of.newlines);
  think_splitter::parts parts;
  for (const auto piece : pieces) splitter.push(piece, parts);
  splitter.finish(parts);
  return parts;
}

void check_split(const split_case& expected, const std::vector<std::string_view>& pieces) {
  const auto parts = split(expected, pieces);
  BOOST_TEST(parts.reasoning == expected.reasoning);
  BOOST_TEST(parts.content == expected.content);
}

BOOST_AUTO_TEST_SUITE(think_splitting)

BOOST_AUTO_TEST_CASE(however_the_text_is_cut) {
  for (const auto& c : cases) {
    const std::string_view text = c.text;
    BOOST_TEST_CONTEXT(c.text) {
      check_split(c, {text});
      for (std::size_t first = 0; first <= text.size(); ++first)
        for (std::size_t second = first; second <= text.size(); ++second)
          check_split(c, {text.substr(0, first), text.substr(first, second - first), text.substr(second)});
      std::vector<std::string_view> bytes;
      for (std::size_t i = 0; i < text.size(); ++i) bytes.push_back(text.substr(i, 1));
      check_split(c, bytes);
    }
  }
}

BOOST_AUTO_TEST_CASE(only_a_possible_tag_is_held_back) {
  think_splitter splitter(answer_form::thinking);
  think_splitter::parts parts;
  splitter.push(">thought </", parts);
  BOOST_TEST(parts.reasoning == "thought ");
  BOOST_TEST(splitter.reasoning());
  splitter.push("x", parts);
  BOOST_TEST(parts.reasoning == "thought </x");
  splitter.push("</think>", parts);
  BOOST_TEST(!splitter.reasoning());
}

BOOST_AUTO_TEST_CASE(the_form_follows_from_the_request) {
  generation_request request;
  request.messages = {{"user", "Q", ""}};
  BOOST_TEST((form_of(request) == answer_form::closing));
  request.style.no_think_opening = "Assistant:";
  BOOST_TEST((form_of(request) == answer_form::direct));
  request.think = think_mode::short_think;
  BOOST_TEST((form_of(request) == answer_form::thinking));
  request.reasoning_raw = true;
  BOOST_TEST((form_of(request) == answer_form::raw));
  request.reasoning_raw = false;
  request.messages.push_back({"assistant", "A", ""});
  BOOST_TEST((form_of(request) == answer_form::raw));
  generation_request plain;
  plain.chat = false;
  BOOST_TEST((form_of(plain) == answer_form::raw));
}

BOOST_AUTO_TEST_SUITE_END()

}  // namespace
}  // namespace skein::protocol
