import ajvFormats from 'ajv-formats'
import { Ajv2020 } from 'ajv/dist/2020.js'
import fastify from 'fastify'
import t from 'tap'
import { startIdentity } from '../../testing/index.ts'
import { API_SCOPES } from '../../lib/api-scopes.ts'
import { ACCESS } from '../../plugins/access-table.ts'
import { build } from '../helpers/build.ts'
import { checkResponses, findProblem } from '../helpers/openapi.ts'

interface Operation {
  operationId?: string
  description?: string
  requestBody?: { content: Record<string, { schema: object, example?: object }> }
  tags?: string[]
  summary?: string
  security?: object[]
  parameters?: { name: string, in: string, schema: object }[]
  responses: Record<string, { description: string, headers?: object, content?: Record<string, { schema: object }> }>
}
interface Document {
  openapi: string
  info: object
  tags: { name: string }[]
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, object>, securitySchemes: { oauth2?: { flows: Record<string, { scopes: object }> } } }
}

t.test('/openapi.json', async (t) => {
  const kit = await build(t, { personalTokens: { maxDays: 30 } })
  const document = (await kit.inject('/openapi.json')).json<Document>()
  const operations = Object.entries(document.paths).flatMap(([path, methods]) =>
    Object.entries(methods).filter(([method]) => method !== 'head').map(([method, operation]) => ({ path, method, ...operation })))

  t.match(document.openapi, /^3\.1\./)
  t.strictSame(operations.map(({ operationId = '' }) => operationId).filter((name) => name in ACCESS).sort(), Object.keys(ACCESS).sort())
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, operations.length, 'operationIds are unique')
  for (const { path, method, operationId = '', tags, summary, description, security, parameters = [], requestBody, responses } of operations) {
    const name = `${method} ${path}`
    t.ok(operationId && summary && description && tags?.length === 1, `${name} has an operationId, a summary, a description and a tag`)
    for (const { example } of Object.values(requestBody?.content ?? {})) t.type(example, 'object', `${name} has an example`)
    for (const [status, field] of [[401, 'WWW-Authenticate'], [429, 'Retry-After'], [503, 'Retry-After']] as const) {
      const response = responses[status]
      if (response?.content?.['application/json'] && !path.startsWith('/health/')) t.ok(field in (response.headers ?? {}), `${name} ${status} tells of ${field}`)
    }
    t.ok(document.tags.some((tag) => tag.name === tags?.[0]), `${name} has a tag that is explained`)
    t.ok(Object.values(responses).every(({ description }) => description !== 'Default Response'), `${name} explains its responses`)
    const row = ACCESS[operationId]
    if (row === undefined) continue
    t.strictSame(security, [...row.sometimes === true ? [{}] : [], { bearer: [] }, { oauth2: row.scope === null ? [] : [row.scope] }], `${name} takes a bearer token with the scope`)
    for (const status of [400, 401, 403, 414, 431, 500, 503]) t.ok(responses[status]?.content?.['application/json'], `${name} tells of ${status}`)
    t.ok(responses[200]?.content?.['application/json'] ?? responses[200]?.content?.['application/x-ndjson'] ?? responses[204], `${name} tells of success`)
    for (const [, parameter] of path.matchAll(/\{(\w+)\}/g)) {
      t.ok(parameters.some((known) => known.name === parameter && known.in === 'path'), `${name} tells of ${parameter}`)
    }
  }
})

t.test('/openapi.json has the OAuth endpoints of the metadata', async (t) => {
  for (const prefix of ['', '/id']) {
    const kit = await build(t, { prefix, oidc: { issuer: `https://id.example${prefix}` } })
    const { paths, components: { securitySchemes: { oauth2 } } } = (await kit.inject(`${prefix}/openapi.json`)).json<Document>()
    const metadata = (await kit.inject(`${prefix}/.well-known/openid-configuration`)).json<Record<string, string>>()
    const endpoints = Object.entries(metadata).filter(([name]) => /_endpoint$|^jwks_uri$/.test(name))
    t.equal(endpoints.length, 9)
    for (const [name, url] of endpoints) t.ok(new URL(url).pathname in paths, name)
    for (const { scopes, ...urls } of Object.values(oauth2?.flows ?? {})) {
      t.strictSame(Object.keys(scopes), ['openid', ...Object.keys(API_SCOPES)])
      for (const url of Object.values<string>(urls)) t.ok(url in paths, url)
    }
  }
  const kit = await build(t, { oidc: false })
  const { paths, components: { securitySchemes } } = (await kit.inject('/openapi.json')).json<Document>()
  t.strictSame(Object.keys(securitySchemes), ['bearer'])
  t.strictSame(paths['/api/v1/user']?.get?.security, [{ bearer: [] }])
  t.notOk('/api/v1/auth/token' in paths)
})

t.test('/openapi.json names its schemas, and gives each list one type', async (t) => {
  const kit = await build(t)
  const document = (await kit.inject('/openapi.json')).json<Document>()
  const text = JSON.stringify(document)
  const names = new Set([...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name))
  t.strictSame([...names].sort(), Object.keys(document.components.schemas).sort())
  for (const name of ['Client', 'ClientItem', 'UserItem', 'Error', 'Tokens', 'CreateUser']) t.ok(names.has(name), name)
  for (const path of ['/api/v1/client/list', '/api/v1/user/list', '/api/v1/resource/list', '/api/v1/auth/sessions']) {
    const { parameters = [], responses } = document.paths[path]!.get!
    t.strictSame(Object.keys(responses[200]!.content ?? {}), ['application/json'])
    t.match(responses[200]!.content?.['application/json']?.schema, { properties: { data: { type: 'array', items: { $ref: String } } } }, path)
    t.notOk(parameters.some(({ name }) => name === 'format'))
  }
  t.match(document.components.schemas.Client, {
    properties: { grants: { items: { type: 'string', enum: ['code', 'refresh', 'client', 'device'] } }, pkce: { type: 'string', enum: ['required', 'optional'] } }
  }, 'a choice of texts is one type')
  t.notMatch(text, /"anyOf":\[\{"type":"string","enum"/)
})

t.test('the limits of /openapi.json are those of the service', async (t) => {
  const kit = await build(t)
  const { paths, components: { schemas } } = (await kit.inject('/openapi.json')).json<Document>()
  const ajv = new Ajv2020({ strict: false })
  ajvFormats.default(ajv)
  const { headers } = await kit.mint({ user: 'root', roles: ['admin'] })
  const { user_id } = await kit.mint({ user: 'ann' })
  const { clientId } = (await kit.inject({ method: 'POST', url: '/api/v1/client', headers, payload: { data: { name: 'n', redirectUris: [], scopes: [] } } })).json().data
  const client = { name: 'n', redirectUris: [], scopes: [] }
  for (const [title, method, url, body] of [
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: '', password: 'correct horse battery staple' } }],
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: 'bob', password: '' } }],
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: 'bob', password: 'correct horse battery staple' }, expired_at: 'tomorrow' }],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, {}],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, { data: {} }],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, { data: { verified_at: 'today' } }],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, { data: { password: '' } }],
    ['PatchProfile', 'PATCH', '/api/v1/user', { data: {} }],
    ['PatchProfile', 'PATCH', '/api/v1/user', { data: { password: '' } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, redirectUris: ['no uri'] } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, image: 'no uri' } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, userId: '' } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, scopes: ['a b'] } }],
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: 'bob', password: 'correct horse battery staple', info: { '': 1 } } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'https://a.example', name: '', scopes: {} } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'https://a.example?b', name: 'A', scopes: {} } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'http://a.example', name: 'A', scopes: {} } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'https://a.example', name: ' ', scopes: {} } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'https://a.example', name: 'A', scopes: { 'a b': 'c' } } }],
    ['CreateResource', 'POST', '/api/v1/resource', { data: { id: 'https://a.example', name: 'A', scopes: { a: '\u0007' } } }],
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: 'bob smith', password: 'correct horse battery staple' } }],
    ['CreateUser', 'POST', '/api/v1/user', { data: { account: 'bob@', password: 'correct horse battery staple' } }],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, { data: { roles: { '': true } } }],
    ['PatchUser', 'PATCH', `/api/v1/user/${user_id}`, { data: { info: { 'a\0': 1 } } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, name: 'a\u0085' } }],
    ['CreateClient', 'POST', '/api/v1/client', { data: { ...client, backchannelLogoutUri: 'http://a.example' } }],
    ['CreateWebhook', 'POST', '/api/v1/webhook', { data: { name: 'a', url: 'no uri', types: ['*'] } }],
    ['CreateWebhook', 'POST', '/api/v1/webhook', { data: { name: 'a', url: 'https://a.example', types: ['user.born'] } }],
    ['PatchClient', 'PATCH', `/api/v1/client/${clientId}`, {}],
    ['PatchClient', 'PATCH', `/api/v1/client/${clientId}`, { data: {} }],
    ['PatchClient', 'PATCH', `/api/v1/client/${clientId}`, { data: {}, regen_secret: false }],
    ['PatchClient', 'PATCH', `/api/v1/client/${clientId}`, { data: { redirectUris: ['no uri'] } }]
  ] as const) {
    const name = `${title} ${JSON.stringify(body)}`
    t.notOk(ajv.validate(schemas[title]!, body), `the document refuses ${name}`)
    t.match((await kit.inject({ method, url, headers, payload: body })).statusCode, 400, `the service refuses ${name}`)
  }
  for (const [title, body] of [
    ['PatchUser', { data: {}, disable: true }], ['PatchUser', { disable: false }], ['PatchClient', { data: {}, regen_secret: true }], ['PatchClient', { data: { image: null } }]
  ] as const) t.ok(ajv.validate(schemas[title]!, body), `the document allows ${title} ${JSON.stringify(body)}`)
  for (const [path, name, good, bad] of [
    ['/api/v1/user/list', 'sort', ['', 'account:asc', 'verified:desc,name:asc'], ['account', 'account:up', 'account:asc:asc', 'id:asc', 'account:asc,']],
    ['/api/v1/client/list', 'sort', ['created:asc'], ['account:asc']],
    ['/api/v1/client/list', 'fields', ['', 'name', 'name,clientSecret'], ['secret', 'name,', 'name secret']],
    ['/api/v1/resource/list', 'sort', ['name:desc'], ['name:']],
    ['/api/v1/user/list', 'after', [''], ['a b', '=']],
    ['/api/v1/webhook/list', 'sort', ['name:asc'], ['url:asc']],
    ['/api/v1/event/list', 'sort', ['', 'time:asc'], ['name:asc']],
    ['/api/v1/event/list', 'from', ['', '2026-11-21T02:51:00Z'], ['yesterday']],
    ['/api/v1/event/feed', 'after', [], ['', 'a', 'a.b', 'now.']]
  ] as const) {
    const { schema } = paths[path]!.get!.parameters!.find((parameter) => parameter.name === name)!
    for (const [values, isGood] of [[good, true], [bad, false]] as const) {
      for (const value of values) {
        const question = `${path}?${name}=${encodeURIComponent(value)}`
        t.equal(ajv.validate(schema, value), isGood, `the document on ${question}`)
        t.equal((await kit.inject({ url: question, headers })).statusCode, isGood ? 200 : 400, `the service on ${question}`)
      }
    }
  }
  for (const [path, method, title] of [
    ['/api/v1/user', 'post', 'CreateUser'], ['/api/v1/webhook', 'post', 'CreateWebhook'], ['/api/v1/user', 'patch', 'PatchProfile'], ['/api/v1/user/{userId}', 'patch', 'PatchUser'],
    ['/api/v1/client', 'post', 'CreateClient'], ['/api/v1/client/{clientId}', 'patch', 'PatchClient'], ['/api/v1/resource', 'post', 'CreateResource']
  ] as const) {
    const { example } = paths[path]![method]!.requestBody!.content['application/json']!
    t.ok(ajv.validate(schemas[title]!, example), `the example of ${title} is valid`)
    const url = path.replace('{userId}', user_id).replace('{clientId}', clientId)
    const reply = await kit.inject({ method: method.toUpperCase() as 'POST', url, headers, payload: example as object })
    t.ok(reply.statusCode < 300, `the example of ${title} is accepted`)
  }
})

t.test('/docs', async (t) => {
  for (const prefix of ['', '/deep/down']) {
    await t.test(`below '${prefix}' the page finds its parts`, async (t) => {
      const kit = await build(t, { prefix })
      for (const path of [`${prefix}/docs`, `${prefix}/docs/`]) {
        const page = await kit.inject(path)
        t.match([page.statusCode, page.headers['content-type']], [200, /text\/html/], path)
        t.match(page.headers['content-security-policy'], /^default-src 'self'; /)
        t.notMatch(page.headers['content-security-policy'], 'upgrade-insecure-requests', 'a browser would ask for its parts over https')
        const parts = [...page.body.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, part = '']) => new URL(part, `http://host${path}`).pathname)
        t.ok(parts.length >= 4)
        for (const part of parts) {
          const whole = await kit.inject(part)
          t.match([whole.statusCode, whole.body.length > 0], [200, true], part)
          const head = await kit.inject({ method: 'HEAD', url: part })
          t.match([head.statusCode, head.headers['content-length'], head.body], [200, whole.headers['content-length'], ''], `HEAD ${part}`)
        }
      }
      t.match((await kit.inject(`${prefix}/docs/static/none.js`)).statusCode, 404)
    })
  }
})

t.test('with the option off there is neither', async (t) => {
  const kit = await build(t, { openapi: false })
  for (const url of ['/openapi.json', '/docs']) t.equal((await kit.inject(url)).statusCode, 404, url)
})

t.test('the check of responses finds undocumented ones', async (t) => {
  const kit = await build(t)
  const document = (await kit.inject('/openapi.json')).json()
  const type = 'application/json; charset=utf-8'
  const count = { method: 'GET', url: '/api/v1/client/count', status: 200, type, body: '{"data":{"count":1}}' }
  const client = {
    clientId: 'a', createdAt: '2026-11-21T02:51:00.000Z', modifiedAt: '2026-11-21T02:51:00.000Z', redirectUris: [], scopes: [], name: 'n'
  }
  const lines = (...records: object[]) => ({
    method: 'GET', url: '/api/v1/client/list', status: 200, type: 'application/x-ndjson; charset=utf-8', body: records.map((record) => `${JSON.stringify(record)}\n`).join('')
  })
  const done = { method: 'DELETE', url: '/api/v1/client/:clientId', status: 204, type: undefined, body: '' }
  for (const good of [count, { ...count, method: 'HEAD', body: '' }, lines(), lines(client, client), done]) t.equal(findProblem(document, good), undefined)
  for (const bad of [
    { ...count, url: '/api/v1/client/cuont' },
    { ...count, method: 'PUT' },
    { ...count, status: 418 },
    { ...count, type: 'text/plain' },
    { ...count, type: undefined },
    { ...count, body: '{"data":{"count":-1}}' },
    { ...count, body: '{"data":{"count":1,"password":"x"}}' },
    lines({ ...client, createdAt: 'yesterday' }),
    lines(client, { ...client, secret: 'sealed' }),
    { ...done, body: '{}' },
    { ...done, type }
  ]) t.type(findProblem(document, bad), 'string', JSON.stringify(bad))
})

t.test('the check of responses sees those of an app', async (t) => {
  const problems: string[] = []
  const app = fastify()
  checkResponses(app, (problem) => problems.push(problem))
  const kit = await startIdentity({ t, app })
  kit.app.get('/undocumented', { schema: { operationId: 'getNothing' } }, () => 'nothing')
  await kit.inject('/api/v1/user')
  t.strictSame(problems, [])
  await kit.inject('/undocumented')
  t.strictSame(problems, ['GET /undocumented 200: the operation is not documented'])
})
