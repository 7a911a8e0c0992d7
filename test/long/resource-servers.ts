import { type ChildProcess, execFile, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { createServer, request } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { startIdentity } from '../../testing/index.ts'
import { findFreePort } from '../helpers/port.ts'

const run_ = promisify(execFile)
const PAGE = new URL('../../docs/resource-servers.md', import.meta.url)
const ORDERS = { id: 'https://api.example.com/orders', name: 'Orders', scopes: { 'orders:read': 'see your orders', 'orders:list': 'list your orders' } }
const OTHER = { id: 'https://api.example.com/other', name: 'Other', scopes: { 'other:read': 'read' } }

const MODULES = '/usr/lib/apache2/modules'

/** A program of the page: how it is built from its blocks, and started. */
interface Server {
  name: string
  /** Languages of its blocks on the page, in their order. */
  blocks: string[]
  /** What says that a tool is there. */
  tools: [command: string, ...args: string[]][]
  /** The status without the scope: 403 where the server can say so. */
  narrow: number
  /** Writes the files. @returns the command */
  prepare (dir: string, texts: string[], port: number): Promise<string[]>
}

const POM = `<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <parent><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-parent</artifactId><version>4.1.2</version></parent>
  <groupId>com.example</groupId><artifactId>api</artifactId><version>1</version>
  <dependencies>
    <dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-security-oauth2-resource-server</artifactId></dependency>
    <dependency><groupId>org.springframework.boot</groupId><artifactId>spring-boot-starter-webmvc</artifactId></dependency>
  </dependencies>
  <build><finalName>api</finalName><plugins><plugin><groupId>org.springframework.boot</groupId><artifactId>spring-boot-maven-plugin</artifactId></plugin></plugins></build>
</project>
`

const SERVERS: Server[] = [
  {
    name: 'Python',
    blocks: ['python'],
    tools: [['python3', '--version']],
    narrow: 403,
    async prepare (dir, [program]) {
      await writeFile(join(dir, 'api.py'), program!)
      return ['python3', join(dir, 'api.py')]
    }
  },
  {
    name: 'Go',
    blocks: ['go'],
    tools: [['go', 'version']],
    narrow: 403,
    async prepare (dir, [program]) {
      await writeFile(join(dir, 'main.go'), program!)
      await writeFile(join(dir, 'go.mod'), 'module example.com/api\n\ngo 1.22\n')
      await run_('go', ['build', '-o', join(dir, 'api'), '.'], { cwd: dir })
      return [join(dir, 'api')]
    }
  },
  {
    name: 'Java',
    blocks: ['java'],
    tools: [['mvn', '--version'], ['java', '--version']],
    narrow: 403,
    async prepare (dir, [program]) {
      const sources = join(dir, 'src/main/java/app')
      await mkdir(sources, { recursive: true })
      await writeFile(join(sources, 'Api.java'), program!)
      await writeFile(join(dir, 'pom.xml'), POM)
      await run_('mvn', ['--batch-mode', '--quiet', '--file', dir, 'package'])
      return ['java', '-jar', join(dir, 'target/api.jar')]
    }
  },
  {
    name: 'nginx',
    blocks: ['nginx', 'js'],
    tools: [['nginx', '-v'], ['test', '-e', '/usr/lib/nginx/modules/ngx_http_js_module.so']],
    narrow: 403,
    async prepare (dir, [site, script]) {
      await writeFile(join(dir, 'auth.js'), script!)
      await writeFile(join(dir, 'nginx.conf'), `load_module /usr/lib/nginx/modules/ngx_http_js_module.so;
daemon off; pid ${dir}/pid; error_log stderr; events {} http { access_log off; js_path ${dir};
${['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${dir}/${name};`).join(' ')}
${site!}}\n`)
      return ['nginx', '-p', dir, '-c', join(dir, 'nginx.conf'), '-g', `error_log stderr;${process.getuid?.() === 0 ? ' user root;' : ''}`]
    }
  },
  {
    name: 'Apache',
    blocks: ['apache'],
    tools: [['apache2', '-v'], ['test', '-e', `${MODULES}/mod_auth_openidc.so`], ['openssl', 'version']],
    narrow: 401,
    async prepare (dir, [site], port) {
      const modules = ['mpm_event', 'authn_core', 'authz_core', 'authz_user', 'proxy', 'proxy_http', 'headers', 'auth_openidc']
      await writeFile(join(dir, 'apache.conf'), `ServerRoot ${dir}
ServerName 127.0.0.1
PidFile ${dir}/pid
ErrorLog "|/bin/cat"
Listen 127.0.0.1:${port}
${modules.map((name) => `LoadModule ${name}_module ${MODULES}/mod_${name}.so`).join('\n')}
OIDCOAuthSSLValidateServer Off
OIDCCacheShmMax 500
Mutex file:${dir} default
RequestHeader set X-User-Id "expr=%{REMOTE_USER}"
${site!}`)
      return ['apache2', '-X', '-f', join(dir, 'apache.conf')]
    }
  }
]

const has = (tools: Server['tools']): string | undefined => tools.map(([command, ...args]) => spawnSync(command, args).status === 0 ? undefined : [command, ...args].join(' ')).find((missing) => missing !== undefined)

function readBlocks (page: string, languages: string[]): string[] {
  return languages.map((language) => {
    const [, text] = new RegExp(`^\`\`\`${language}\\n([^]*?)^\`\`\`$`, 'm').exec(page) ?? []
    if (text === undefined) throw new Error(`the page has no ${language}`)
    return text
  })
}

/** The service over https, with a certificate of nobody. */
async function startSecure (dir: string, target: string) {
  await run_('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '1', '-subj', '/CN=127.0.0.1', '-keyout', join(dir, 'key.pem'), '-out', join(dir, 'cert.pem')])
  const server = createSecureServer({ key: await readFile(join(dir, 'key.pem')), cert: await readFile(join(dir, 'cert.pem')) }, (incoming, outgoing) => {
    const relayed = request(new URL(incoming.url!, target), { method: incoming.method!, headers: { ...incoming.headers, host: new URL(target).host } }, (reply) => {
      outgoing.writeHead(reply.statusCode!, reply.headers)
      reply.pipe(outgoing)
    })
    relayed.on('error', () => outgoing.destroy())
    incoming.pipe(relayed)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { url: `https://127.0.0.1:${(server.address() as AddressInfo).port}`, close: () => server.close() }
}

/** The API behind a proxy: it answers the user that the proxy names. */
async function startApi () {
  const server = createServer(({ headers }, response) => response.end(headers['x-user-id'])).listen(0, '127.0.0.1')
  await once(server, 'listening')
  return { port: (server.address() as AddressInfo).port, close: () => server.close() }
}

async function waitFor (child: ChildProcess, url: string, readText: () => string): Promise<void> {
  for (let tries = 0; tries < 600; tries++) {
    if (child.exitCode !== null) throw new Error(`exited: ${readText()}`)
    if (await fetch(url).then(() => true, () => false)) return
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
  throw new Error(`does not answer: ${readText()}`)
}

/** Starts each program of docs/resource-servers.md that the machine has the tools for, and asks it with each kind of token. */
export async function run (): Promise<string> {
  const kit = await startIdentity({ resources: [ORDERS, OTHER], oidc: {} })
  const { url } = await kit.listen()
  const { user_id } = await kit.mint({ user: 'ann' })
  const operator = { user_id: '', isAdmin: true }
  const { clients } = kit.app.identity
  const create = async (name: string, scopes: string[]) => (await clients.create({ data: { redirectUris: [], scopes, name, userId: user_id }, credentials: true }, operator)).clientId
  const [api, client_id] = [await create('Orders API', []), await create('App', ['orders:read', 'orders:list', 'other:read'])]
  const { clientSecret = '' } = await clients.require(api, operator)
  const mint = async (options: { scopes?: string[], resource?: string } = {}) => (await kit.app.identity.tokens.mint({ user_id, client_id, ...options })).access_token
  const page = await readFile(PAGE, 'utf8')
  const verdicts: string[] = []
  const behind = await startApi()
  try {
    for (const { name, blocks, tools, narrow, prepare } of SERVERS) {
      const missing = has(tools)
      if (missing !== undefined) {
        verdicts.push(`${name} (skipped: no ${missing})`)
        continue
      }
      const dir = await mkdtemp(join(tmpdir(), 'resource-server-'))
      const port = await findFreePort()
      const secure = name === 'Apache' ? await startSecure(dir, url) : undefined
      const fill = (text: string) => text.replaceAll('https://id.example.com', secure?.url ?? url).replaceAll('CLIENT_ID', api).replaceAll('CLIENT_SECRET', clientSecret)
        .replaceAll('8080', String(port)).replaceAll('8081', String(behind.port))
      let child: ChildProcess | undefined
      try {
        const texts = readBlocks(page, blocks).map(fill)
        const [command, ...args] = await prepare(dir, texts, port)
        let text = ''
        child = spawn(command!, args, { stdio: ['ignore', 'pipe', 'pipe'] })
        for (const stream of [child.stdout!, child.stderr!]) stream.setEncoding('utf8').on('data', (part: string) => { text += part })
        const orders = `http://127.0.0.1:${port}/orders`
        await waitFor(child, orders, () => text)
        const full = await mint({ resource: ORDERS.id, scopes: ['orders:read'] })
        const ask = async (token?: string) => await fetch(orders, { headers: { 'x-user-id': 'evil', ...(token !== undefined && { authorization: `Bearer ${token}` }) } })
        const reply = await ask(full)
        const seen = [reply.status, await reply.text()]
        const found: Record<string, unknown> = {
          right: seen,
          narrow: (await ask(await mint({ resource: ORDERS.id, scopes: ['orders:list'] }))).status,
          other: (await ask(await mint({ resource: OTHER.id }))).status,
          plain: (await ask(await mint())).status,
          'made up': (await ask('abc')).status,
          none: (await ask()).status
        }
        await kit.inject({ method: 'POST', url: '/api/v1/auth/logout', headers: { authorization: `Bearer ${full}` } })
        found.revoked = (await ask(full)).status
        const expected = { right: [200, user_id], narrow, other: 401, plain: 401, 'made up': 401, none: 401, revoked: 401 }
        if (JSON.stringify(found) !== JSON.stringify(expected)) throw new Error(`${name}: ${JSON.stringify(found)} in place of ${JSON.stringify(expected)}\n${text.slice(-4000)}`)
        verdicts.push(name)
      } finally {
        if (child?.exitCode === null) {
          const closed = once(child, 'close')
          child.kill(name === 'nginx' ? 'SIGTERM' : 'SIGKILL')
          await closed
        }
        secure?.close()
        await rm(dir, { recursive: true, force: true })
      }
    }
  } finally {
    behind.close()
    await kit.close()
  }
  return `resource servers: ${verdicts.join('; ')}`
}
