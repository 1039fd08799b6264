// A bridge: it offers the JSON-RPC methods of a Drupal site as tools, over three HTTP endpoints.
import {server} from './server.js'

const {DRUPAL_URL = '', BRIDGE_LISTEN = '127.0.0.1:8081'} = process.env
if (!/^https?:\/\/[^@]+$/.test(DRUPAL_URL)) {
  fail('DRUPAL_URL has to be the URL of the site, such as https://example.org, without user and password')
}
const listen = /^\[?(.*?)\]?:(\d+)$/.exec(BRIDGE_LISTEN)
if (!listen) fail('BRIDGE_LISTEN has to be HOST:PORT, such as 127.0.0.1:8081')
server.listen(Number(listen[2]), listen[1])

function fail(message) {
  console.error(message)
  process.exit(2)
}
