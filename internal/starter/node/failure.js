// A Failure is an error response of the bridge. The codes and their statuses are the table of the contract (errors/code-stable).
export class Failure extends Error {
  constructor(status, code, message, data, headers = {}) {
    super(message)
    Object.assign(this, {status, code, data, headers})
  }
}

// One function for every name that the caller does not see, so that nobody learns why (access/no-oracle).
export const notFound = name => new Failure(404, 'tool_not_found', `There is no tool named "${name}".`)
