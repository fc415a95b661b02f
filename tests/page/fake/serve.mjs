// Serves the page with the fake hub, to look at it by hand: node fake/serve.mjs [look|fresh|long] [port]
import { FakeHub } from "./play.mjs";
import { freshWorld, longWorld, lookWorld } from "./world.mjs";

const [which = "look", port = "0"] = process.argv.slice(2);
const worlds = { look: lookWorld, fresh: freshWorld, long: () => longWorld(3000) };
const hub = await new FakeHub(worlds[which]()).start(Number(port));
hub.onPrompt = async (chat) => {
  hub.chat(chat.id, { running: true, turn: chat.turn + 1, progress: { phase: "writing", since: Date.now() } });
  await hub.stream(chat.id, 200, 20);
  hub.chat(chat.id, { running: false, progress: null });
};
process.stdout.write(`${hub.url}\n`);
