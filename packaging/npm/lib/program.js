// Where the program of the package for this system is.
'use strict';

const name = `@bridgecheck/${process.platform}-${process.arch}`;

// program returns the path of the program: what BRIDGECHECK in the environment names, or that of the package for this system.
function program() {
  if (process.env.BRIDGECHECK) return process.env.BRIDGECHECK;
  try {
    return require.resolve(`${name}/bin/bridgecheck${process.platform === 'win32' ? '.exe' : ''}`);
  } catch {
    const wanted = require('../package.json').optionalDependencies ?? {};
    throw new Error(name in wanted
      ? `the package ${name} is not installed; install bridgecheck again, with optional dependencies (without --omit=optional), on this system`
      : `there is no package for ${process.platform} on ${process.arch}; there are ${Object.keys(wanted).join(', ')}`);
  }
}

module.exports = { program };
