import { createHash } from 'node:crypto'
import Fastify from 'fastify'
import { MongoClient } from 'mongodb'
import { readOptions, serve } from './serve.ts'
import { tokenInfoSchema } from './answers.ts'

// The same reads by hand with the MongoDB driver. `pipeline` takes one round trip, as the service does; `finds` is the
// straightforward way: the token, then its user, client and grant at once.

const { url, reads } = readOptions<{ url: string, reads: 'pipeline' | 'finds' }>()

interface Token { _id: string, user_id: string, client_id: string, grant_id: string, expired_at: Date }
interface User { _id: string, account: string, name: string, roles: object, disabled_at?: string }
interface Client { _id: string, scopes: string[] }
interface Grant { _id: string, expired_at: Date }
interface Found { token: Token, user: User, client: Client, grant: Grant }

// As large as the service's pool.
const mongo = await new MongoClient(url, { maxPoolSize: 100 }).connect()
const tokens = mongo.db().collection<Token>('access_tokens')
const users = mongo.db().collection<User>('users')
const clients = mongo.db().collection<Client>('clients')
const grants = mongo.db().collection<Grant>('grants')

async function findByPipeline (_id: string): Promise<Found> {
  const [found] = await tokens.aggregate<{ token: Token, user: User[], client: Client[], grant: Grant[] }>([
    { $match: { _id } },
    { $project: { _id: 0, token: '$$ROOT' } },
    { $lookup: { from: 'users', localField: 'token.user_id', foreignField: '_id', as: 'user' } },
    { $lookup: { from: 'clients', localField: 'token.client_id', foreignField: '_id', as: 'client' } },
    { $lookup: { from: 'grants', localField: 'token.grant_id', foreignField: '_id', as: 'grant' } }
  ]).toArray()
  return { token: found!.token, user: found!.user[0]!, client: found!.client[0]!, grant: found!.grant[0]! }
}

async function findInTwoSteps (_id: string): Promise<Found> {
  const token = (await tokens.findOne({ _id }))!
  const [user, client, grant] = await Promise.all([
    users.findOne({ _id: token.user_id }), clients.findOne({ _id: token.client_id }), grants.findOne({ _id: token.grant_id })
  ])
  return { token, user: user!, client: client!, grant: grant! }
}

const find = reads === 'pipeline' ? findByPipeline : findInTwoSteps

const app = Fastify()
app.get('/api/v1/auth/tokeninfo', { schema: tokenInfoSchema }, async (request, reply) => {
  const id = createHash('sha256').update(request.headers.authorization!.slice(7)).digest('base64url')
  const { token, user, client, grant } = await find(id)
  const now = new Date()
  if (token.expired_at <= now || grant.expired_at <= now || user.disabled_at !== undefined) throw Object.assign(new Error('expired'), { statusCode: 401 })
  reply.header('cache-control', 'no-store')
  return { data: { user_id: user._id, account: user.account, name: user.name, roles: user.roles, client_id: client._id, scopes: client.scopes } }
})

await serve(app)
