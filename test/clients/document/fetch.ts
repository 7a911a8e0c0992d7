// A client by openapi-typescript and openapi-fetch: prints what it got.
import createClient from 'openapi-fetch'
import type { components, paths } from '../node_modules/.generated/document.d.ts'

const { URL: baseUrl = '', TOKEN = '', CODE = '', VERIFIER = '', REDIRECT_URI = '', CLIENT_ID, CLIENT_SECRET } = process.env

const bearer = (token: string) => createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${token}` } })
const admin = bearer(TOKEN)

function succeed<T> ({ data, error }: { data?: T, error?: unknown }): T {
  if (data === undefined) throw new Error(JSON.stringify(error))
  return data
}

const { user_id } = succeed(await admin.POST('/api/v1/user', { body: { data: { account: 'fetch@example.com', password: 'a password of this test' } } })).data

const basic = createClient<paths>({
  baseUrl,
  headers: {
    Authorization: `Basic ${btoa(`${CLIENT_ID}:${CLIENT_SECRET}`)}`, 'Content-Type': 'application/x-www-form-urlencoded'
  }
})
const tokens = succeed(await basic.POST('/api/v1/auth/token', {
  body: { grant_type: 'authorization_code', code: CODE, code_verifier: VERIFIER, redirect_uri: REDIRECT_URI }
}))
const profile = succeed(await bearer(tokens.access_token).GET('/api/v1/user')).data

const users: components['schemas']['UserItem'][] = []
let after: string | null | undefined
do {
  const page = await admin.GET('/api/v1/user/list', { params: { query: { sort: 'created:desc', limit: 2, fields: 'disabled', ...(after != null && { after }) } } })
  users.push(...succeed(page).data)
  const [, link] = /<([^>]*)>; rel="next"/.exec(page.response.headers.get('link') ?? '') ?? []
  after = link === undefined ? undefined : new URLSearchParams(link).get('after')
} while (after !== undefined)

const changed = await admin.PATCH('/api/v1/user/{userId}', { params: { path: { userId: user_id } }, body: { data: { roles: { editor: true } }, disable: true } })
const refused = await admin.GET('/api/v1/user/{userId}', { params: { path: { userId: 'nobody' } } })
const wrong = await basic.POST('/api/v1/auth/token', { body: { grant_type: 'refresh_token', refresh_token: 'x' } })

console.log(JSON.stringify({
  created: users.some((user) => user.user_id === user_id && user.disabled_at === null),
  account: profile.account,
  pages: users.map(({ account }) => account),
  changed: changed.response.status,
  code: refused.error?.code,
  oauth: wrong.error !== undefined && 'error_description' in wrong.error ? wrong.error.error : undefined
}))
