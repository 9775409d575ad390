// The page's start: what people do here, pairs or sorting, is what the server says.
import { sentence, start, trouble } from "/static/page.js";
import { pairs } from "/static/pairs.js";
import { sorting } from "/static/sorting.js";

start({ pairs, sort: sorting }).catch((error) => trouble(sentence(error.message)));
