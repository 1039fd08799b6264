// Loaded before an example server: it listens on a free port of this machine, whatever port it asks for, and prints that port.
import { Server } from 'node:net';

const listen = Server.prototype.listen;
Server.prototype.listen = function (...args) {
  this.once('listening', () => console.log(`listening on 127.0.0.1:${this.address().port}`));
  return listen.call(this, 0, '127.0.0.1', args.find((a) => typeof a === 'function'));
};
