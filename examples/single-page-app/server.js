// Serves the files of the single-page app and its configuration: the issuer and the client id. Any static host will do.
import { createServer } from 'node:http'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'

const { ISSUER = 'http://127.0.0.1:3000', CLIENT_ID, PORT = '8082' } = process.env
if (!CLIENT_ID) throw new Error('CLIENT_ID is not set: see README.md beside this file')

const FILES = {
  '/': ['text/html', new URL('index.html', import.meta.url)],
  '/app.js': ['text/javascript', new URL('app.js', import.meta.url)],
  '/oauth4webapi.js': ['text/javascript', import.meta.resolve('oauth4webapi')]
}

const HEADERS = {
  'content-security-policy': `default-src 'none'; script-src 'self'; img-src data:; connect-src 'self' ${new URL(ISSUER).origin}; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff'
}

const server = createServer(async (request, response) => {
  const { pathname } = new URL(request.url, 'http://localhost')
  const send = (status, type, body) => response.writeHead(status, { ...HEADERS, 'content-type': `${type}; charset=utf-8` }).end(body)
  if (pathname === '/config.json') return send(200, 'application/json', JSON.stringify({ issuer: ISSUER, clientId: CLIENT_ID }))
  if (!Object.hasOwn(FILES, pathname)) return send(404, 'text/plain', 'There is no such file.')
  const [type, file] = FILES[pathname]
  send(200, type, await readFile(fileURLToPath(file)))
})

server.listen(Number(PORT), '127.0.0.1', () => console.log(`Single-page app: http://127.0.0.1:${server.address().port}`))
