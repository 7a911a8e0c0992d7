import { range, userAt } from '../fixture.ts'

const text = { type: 'string' } as const
const map = { type: 'object', additionalProperties: true } as const

/** Response schemas for the bare routes: Fastify compiles a serializer from each, as it does for the service. */
export const tokenInfoSchema = {
  response: {
    200: {
      type: 'object',
      properties: {
        data: {
          type: 'object',
          properties: { user_id: text, account: text, name: text, roles: map, client_id: text, scopes: { type: 'array', items: text } }
        }
      }
    }
  }
} as const

const user = {
  type: 'object',
  properties: { user_id: text, account: text, created_at: text, modified_at: text, verified_at: text, roles: map, name: text, info: map }
} as const

export const userSchema = { response: { 200: { type: 'object', properties: { data: user } } } } as const
export const usersSchema = { response: { 200: { type: 'object', properties: { data: { type: 'array', items: user } } } } } as const

/** A user as the service shows them. */
export function shownUserAt (index: number) {
  const { created_at, ...rest } = userAt(index)
  return { ...rest, created_at, modified_at: created_at, verified_at: created_at }
}

export const page = range(100, shownUserAt)
