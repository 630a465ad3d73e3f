package codegen

import "fmt"

// Libraries of which one run produces whole answers: the program is a step of the search, and one of its states says
// whether another step follows (roperator.State.Repeats).

// String says how the library searches, and when an answer ends.
func (g *Generation) String() string {
	text := fmt.Sprintf("%s, at most %d tokens with the prompt", g.Search, g.Tokens)
	for i, e := range g.Ends {
		if i == 0 {
			text += ", until"
		} else {
			text += " or"
		}
		text += fmt.Sprintf(" %d", e)
	}
	return text
}

// generateFunction is the function that only such libraries have.
const generateFunction = `
extern "C" {

int @NAME@_generate(@NAME@_ctx* ctx, const void* const others[], const int64_t* prompt, const int64_t* prompt_length,
                    int64_t limit, int64_t* tokens, int64_t* length) {
  if (!ctx) return @IN@no_context();
  return rt::guarded(
      [&] {
        const int first = (@MODEL_TABLES@).input_count - 3;
        if (first > 0 && !others) throw rt::Error{rt::kBadArgument, "others is a null pointer"};
        std::vector<const void*> in(others, others + first);
        for (const void* p : {static_cast<const void*>(prompt), static_cast<const void*>(prompt_length),
                              static_cast<const void*>(&limit)}) {
          in.push_back(p);
        }
        void* const out[] = {tokens, length};
        @IN@context_of(ctx).run(in.data(), out, true);
      },
      [ctx](const std::string& text) { @IN@context_of(ctx).set_error(text); });
}

}  // extern "C"
`
