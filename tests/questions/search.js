// Answers searches as the site does: with its own program, outside of a browser.
// node search.js SITE WORDS...: prints one line of JSON per search, the places of its first page.
const fs = require("fs");
const path = require("path");

const [site, ...searches] = process.argv.slice(2);
const folder = path.join(site, "assets/javascripts/workers");
const program = fs.readdirSync(folder).find((name) => name.startsWith("search."));
const index = JSON.parse(fs.readFileSync(path.join(site, "search.json"), "utf8"));

// What the page and its worker send each other.
const [SETUP, READY, QUERY, RESULT] = [0, 1, 2, 3];
const worker = {
  postMessage(message) {
    if (message.type === RESULT) {
      console.log(JSON.stringify(message.data.items.map((item) => index.items[item.id].location)));
    } else if (message.type !== READY) {
      console.error(`the search program answered ${JSON.stringify(message)}`);
      process.exit(1);
    }
    if (searches.length > 0) {
      const data = { input: searches.shift(), filter: { input: [] } };
      worker.onmessage({ data: { type: QUERY, data } });
    }
  },
};
new Function("self", fs.readFileSync(path.join(folder, program), "utf8"))(worker);
worker.onmessage({ data: { type: SETUP, data: index } });
