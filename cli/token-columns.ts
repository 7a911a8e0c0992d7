import type { ServiceToken } from '../schemas/client.ts'

/** The columns of service tokens and personal access tokens, which are listed alike. */
export const TOKEN_COLUMNS = {
  TOKEN_ID: 'id',
  NAME: 'name',
  ENDS_IN: ({ last4 }: ServiceToken) => `...${last4}`,
  SCOPES: ({ scopes }: ServiceToken) => scopes.join(','),
  RESOURCE: 'resource',
  CREATED: 'createdAt',
  EXPIRES: 'expiresAt',
  LAST_USED: 'lastUsedAt',
  FROM: 'lastUsedFrom'
} as const
