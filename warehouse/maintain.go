package warehouse
