/**
 * The values of node:http that the service uses. An `import` from node:http would read all its exports, and its getter for WebSocket loads
 * undici.
 * @module
 */
export const {
  Agent, IncomingMessage, STATUS_CODES, ServerResponse, createServer, request, validateHeaderName, validateHeaderValue
} = process.getBuiltinModule('node:http')
